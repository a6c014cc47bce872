//! A test of the demonstration in the repository's examples.

use std::process::Command;

use crate::{CHAOS, printed, tollgate};

#[test]
fn the_changing_world_ends_within_its_bounds() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/changing-world.sh");
    let output = Command::new(script)
        .arg("--quick")
        .env("TOLLGATE_CHAOS", CHAOS)
        .env("TOLLGATE", tollgate())
        .output()
        .unwrap();
    let printed = printed(&output);
    println!("{printed}");
    assert!(output.status.success(), "{printed}");
    for figure in [
        "errors to callers 0 ≤ 0",
        "windows opened early 0 ≤ 0",
        "refusals below the limit 0 ≤ 0",
        "calls to a primary that was replaced 0 ≤ 0",
        "units above a client's limit ",
        "units that a move or a failover held back ",
        "windows moved from memcached ",
        "windows moved to the new shard ",
        "units given back ",
    ] {
        assert!(printed.contains(figure), "{figure}: {printed}");
    }
}
