//! Checks the units in `deploy/systemd` with systemd itself.

use std::process::Command;

use crate::packaging::files::{changed, root, run, shipped};

#[test]
fn systemd_finds_no_fault_in_the_units() {
    let folder = tempfile::tempdir().unwrap();
    let mut units = Vec::new();
    for entry in root().join("deploy/systemd").read_dir().unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let mut text = shipped(&format!("deploy/systemd/{name}"));
        if name.ends_with(".service") {
            // The binary is not installed on test machines.
            let start = format!("ExecStart={} serve", env!("CARGO_BIN_EXE_tollgate"));
            text = changed(&text, "ExecStart=tollgate serve", &start);
        }
        let unit = folder.path().join(name);
        std::fs::write(&unit, text).unwrap();
        units.push(unit);
    }
    assert_eq!(units.len(), 3);
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]).args(&units);
    let output = run(verify.env("SYSTEMD_UNIT_PATH", format!("{}:", folder.path().display())));
    let faults = String::from_utf8(output.stderr).unwrap();
    let ours = faults.lines().filter(|line| line.contains("tollgate"));
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(output.status.success(), "{faults}");
}
