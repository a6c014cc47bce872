//! Runs the commands of `docs/simulation.md`.

use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/simulation.md");

/// Every command of the page runs. The test runs fewer worlds than the page, which is enough for
/// this check.
#[test]
fn its_commands_run() {
    let folder = tempfile::tempdir().unwrap();
    let block = PAGE.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mut commands = 0;
    let mut lines = block.lines();
    // The flag is a matter of the build.
    assert_eq!(lines.next(), Some("export RUSTFLAGS=\"--cfg tokio_unstable\""));
    for line in lines {
        let command = line.split('#').next().unwrap().trim();
        let (cargo, arguments) = command.split_once(" -- ").unwrap();
        assert!(cargo.starts_with("cargo run ") && cargo.ends_with("-p tollgate-sim"), "{command}");
        let arguments = arguments.replace("6000000", "12").replace("5000000", "8");
        let arguments = arguments.replace("10000", "8");
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate-sim"))
            .args(arguments.split(' '))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command}: {printed}");
        assert!(!printed.is_empty(), "{command} prints nothing");
        commands += 1;
    }
    assert_eq!(commands, 6);
    let log = std::fs::read_to_string(folder.path().join("worlds.log")).unwrap();
    assert!(log.starts_with("seeds 8..12: 4 worlds in "), "{log}");
    let page = std::fs::read_to_string(folder.path().join("world.html")).unwrap();
    assert!(page.contains("<th>node 0"));
}
