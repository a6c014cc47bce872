//! The benchmark of the Redis store runs to its end, and measures the same work for all contenders.

use std::process::Command;

#[test]
fn a_quick_run_prints_one_table_in_which_both_admitted_the_same() {
    check(&[], &["two keys", "tollgate"]);
}

/// The module must be built before this test. `./test` builds it into the folder of the test, and
/// so does `cargo build -p tollgate-module`.
#[test]
fn both_forms_of_the_module_do_the_same_work() {
    let test = std::env::current_exe().unwrap();
    let module = test.with_file_name("libtollgate_module.so");
    let module = module.to_str().unwrap();
    check(&["--module", module], &["two keys", "tollgate", "module", "module, tables"]);
}

fn check(arguments: &[&str], contenders: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_redis_vs_two_keys"))
        .args(["--quick", "--markdown"])
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|cell| cell == name).unwrap();
    let (who, admitted) = (column("who"), column("admitted"));
    let rows: Vec<_> = rows.skip(1).collect();
    assert_eq!(rows.len(), 12 * contenders.len(), "{text}");
    for rows in rows.chunks(contenders.len()) {
        for (row, contender) in rows.iter().zip(contenders) {
            assert_eq!(row[who], *contender, "{text}");
            assert_eq!(row[admitted], rows[0][admitted], "{text}");
        }
    }
    // There are two rounds with one hot key each. Charges above the quota of 200 are refused.
    assert_eq!(rows[0][admitted], "400", "{text}");
    // There are two rounds of a thousand decisions on a hundred keys. No charge is refused.
    assert_eq!(rows[4 * contenders.len()][admitted], "2000", "{text}");
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}
