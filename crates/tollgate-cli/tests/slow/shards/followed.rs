//! `tollgate shards --follow` from the first check to the end of a rebalance.

use std::fs;

use crate::shards::fleet::{Fleet, charge, node, shards};

/// Returns the phases at the start of the lines, without repetitions.
fn phases(response: &str) -> Vec<&str> {
    let mut phases: Vec<_> = response.lines().filter_map(|line| line.split(' ').next()).collect();
    phases.dedup();
    phases
}

#[tokio::test]
async fn a_move_is_followed_to_its_end() {
    let fleet = Fleet::start(2).await;
    let path = fleet.policy("new.yaml", &[0, 1], Some(&[0]));
    // A rebalance is done after the longest window that began before it.
    let brief = fs::read_to_string(&path).unwrap().replace("window: 1h", "window: 1s");
    fs::write(&path, brief).unwrap();
    let decides = node(&path);
    charge(&[&decides], 4, 2);
    let followed = shards(&["--policy", path.to_str().unwrap(), "--follow"]);
    let response = String::from_utf8(followed.stdout).unwrap();
    assert!(followed.status.success(), "{response}{}", String::from_utf8_lossy(&followed.stderr));
    // A slow observer may miss a phase, but never sees an earlier one after a later one.
    let observed = phases(&response);
    assert!(
        ["dual_write cutover done", "cutover done", "dual_write done"]
            .contains(&observed.join(" ").as_str()),
        "{response}"
    );
    let last = response.lines().last().unwrap();
    assert!(last.contains("  1 node on the new map; "), "the one that decides: {response}");
    assert!(last.contains(" -> ") && last.contains("remove store.redis.previous"), "{response}");
    // The node has reached the same phase without a command.
    decides.wait_for_log("the move is complete");
}

#[tokio::test]
async fn programs_follow_too() {
    let fleet = Fleet::start(2).await;
    let path = fleet.policy("new.yaml", &[0, 1], Some(&[0]));
    let brief = fs::read_to_string(&path).unwrap().replace("window: 1h", "window: 1s");
    fs::write(&path, brief).unwrap();
    let followed = shards(&["--policy", path.to_str().unwrap(), "--follow", "--json"]);
    let response = String::from_utf8(followed.stdout).unwrap();
    let lines = response.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["rebalance"]["phase"], &last["nodes"]["current"]),
        (&"done".into(), &0.into())
    );
    assert!(
        last["rebalance"].get("transferred").is_none(),
        "who decides nothing carries nothing: {response}"
    );
}
