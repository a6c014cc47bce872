//! The Debian package: the content that `cargo deb` is configured to add.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::packaging::files::{root, run, shipped};
use crate::support::world::tollgate;

/// Returns the manifest's settings for the package.
fn package() -> Value {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version=1",
        "--manifest-path",
        manifest,
    ]);
    let metadata: Value = serde_json::from_slice(&run(&mut cargo).stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "tollgate-cli").unwrap();
    package["metadata"]["deb"].clone()
}

/// Returns the files of the package: source, target and permissions.
fn assets() -> Vec<[String; 3]> {
    let assets = package()["assets"].clone();
    serde_json::from_value(assets).expect("three texts an asset")
}

#[test]
fn it_holds_the_binary_its_papers_and_a_policy_that_is_the_operators() {
    let to: BTreeSet<String> = assets().into_iter().map(|[_, to, _]| to).collect();
    let expected = [
        "etc/tollgate/policy.yaml",
        "usr/bin/",
        "usr/lib/redis/modules/",
        "usr/lib/systemd/system/tollgate-resp.socket",
        "usr/share/bash-completion/completions/tollgate",
        "usr/share/doc/tollgate/README.md",
        "usr/share/doc/tollgate/examples/policies/",
        "usr/share/doc/tollgate/examples/redis-acl.txt",
        "usr/share/fish/vendor_completions.d/tollgate.fish",
        "usr/share/man/man1/",
        "usr/share/zsh/vendor-completions/_tollgate",
    ];
    assert_eq!(to, expected.map(str::to_owned).into());
    assert_eq!(package()["conf-files"], serde_json::json!(["/etc/tollgate/policy.yaml"]));
    for [from, to, rights] in assets() {
        assert_eq!(rights == "755", to == "usr/bin/", "{to}");
        let is_built = from.contains("target/");
        let source = from.trim_start_matches("../../");
        let folder = source.split_once('*').map_or(source, |(folder, _)| folder);
        assert!(is_built || root().join(folder).exists(), "{from}");
    }
}

#[test]
fn what_is_generated_is_what_the_package_takes() {
    let build = shipped("deploy/debian/build.sh");
    for [from, _, _] in assets() {
        let generated = from.strip_prefix("../../target/package/");
        let Some(generated) = generated.map(|path| path.trim_end_matches("/*.1")) else { continue };
        assert!(build.contains(&format!("target/package/{generated}")), "nothing makes {from}");
    }
    let module = build.contains("cargo build --release --locked --package tollgate-module ");
    assert!(module, "nothing builds the server module");
    let syntax =
        run(Command::new("bash").args(["-n", "deploy/debian/build.sh"]).current_dir(root()));
    assert!(syntax.status.success(), "{}", String::from_utf8_lossy(&syntax.stderr));
}

#[test]
fn its_policy_is_the_one_that_its_unit_reads_and_is_in_order() {
    let units = &package()["systemd-units"][0];
    let folder = units["unit-scripts"].as_str().unwrap().trim_start_matches("../../");
    let unit = shipped(&format!("{folder}/{}.service", units["unit-name"].as_str().unwrap()));
    assert!(
        unit.contains("\nExecStart=tollgate serve --policy /etc/tollgate/policy.yaml "),
        "{unit}"
    );
    let policy = root().join("deploy/debian/policy.yaml");
    let checked = tollgate(&["check", "--policy", policy.to_str().unwrap()]);
    assert!(checked.status.success() && checked.stderr.is_empty());
}
