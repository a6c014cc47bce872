//! Tests of `tollgate fmt`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output, Stdio};

use crate::support::node::Folder;

const WRITTEN: &str = "limits:\n    core: {quota: 1,window: 1h}   #one\n";
const FORMATTED: &str = "limits:\n  core: { quota: 1, window: 1h } # one\n";

fn fmt(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tollgate")).arg("fmt").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_file_is_replaced_and_keeps_its_permissions() {
    let folder = Folder::with(WRITTEN);
    let path = folder.policy();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path("link.yaml");
    symlink(&path, &link).unwrap();
    let link = link.display().to_string();
    let checked = fmt(&["--check", &link]);
    assert!(!checked.status.success());
    assert!(text(&checked.stderr).contains("link.yaml: not in the standard form"));
    assert_eq!(fs::read_to_string(&path).unwrap(), WRITTEN);
    let done = fmt(&[&link]);
    assert!(done.status.success() && text(&done.stderr).contains("link.yaml: formatted"));
    assert_eq!(fs::read_to_string(&path).unwrap(), FORMATTED);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let again = fmt(&["--check", &link]);
    assert!(again.status.success() && again.stderr.is_empty());
}

#[test]
fn standard_input_is_formatted_to_standard_output() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let command = command.args(["fmt", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), WRITTEN.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(text(&output.stdout), FORMATTED);
}

#[test]
fn a_file_with_a_mistake_is_named_with_its_place_and_the_others_are_formatted() {
    let folder = Folder::with(WRITTEN);
    folder.write("broken.yaml", "limits: {\n");
    let (good, broken) =
        (folder.policy().display().to_string(), folder.path("broken.yaml").display().to_string());
    let output = fmt(&[&broken, "missing.yaml", &good]);
    let errors = text(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("broken.yaml:"), "{errors}");
    assert!(errors.contains("cannot read missing.yaml"), "{errors}");
    assert!(errors.contains("2 files cannot be formatted"), "{errors}");
    assert_eq!(fs::read_to_string(folder.policy()).unwrap(), FORMATTED);
}
