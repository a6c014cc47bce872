//! The benchmark of the Redis store runs to its end and measures the same work for both contenders.

use std::process::Command;

#[test]
fn a_quick_run_prints_one_table_in_which_both_admitted_the_same() {
    let output = Command::new(env!("CARGO_BIN_EXE_redis_vs_two_keys"))
        .args(["--quick", "--markdown"])
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
    assert_eq!(rows.len(), 24, "{text}");
    for pair in rows.chunks(2) {
        assert_eq!([&pair[0][who], &pair[1][who]], ["two keys", "tollgate"], "{text}");
        assert_eq!(pair[0][admitted], pair[1][admitted], "{text}");
    }
    // Two rounds with one hot key each: charges above its quota of 200 are refused.
    assert_eq!(rows[0][admitted], "400", "{text}");
    // Two rounds of a thousand decisions on a hundred keys: none is refused.
    assert_eq!(rows[8][admitted], "2000", "{text}");
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}
