//! The output of `tollgate shards`.

use crate::shards::fleet::{Fleet, shards};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn shards_are_listed_with_their_shares_and_their_health() {
    let mut fleet = Fleet::start(2).await;
    let policy = fleet.policy("policy.yaml", &[0, 1], None);
    let policy = policy.to_str().unwrap();
    let listed = shards(&["--policy", policy]);
    let response = text(&listed.stdout);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    for server in &fleet.servers {
        let line = response.lines().find(|line| line.contains(&server.url())).unwrap();
        assert!(
            line.contains("static") && line.contains("50.0 %") && line.contains("up"),
            "{response}"
        );
    }
    fleet.servers[1].kill();
    let listed = shards(&["--policy", policy, "--json"]);
    assert_eq!(listed.status.code(), Some(1));
    assert!(text(&listed.stderr).contains("1 of 2 shards are down"));
    let response: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(response["shards"][0]["up"], true);
    assert_eq!(response["shards"][1]["up"], false);
}

#[tokio::test]
async fn a_subject_has_a_home_and_a_plan_says_who_moves() {
    let fleet = Fleet::start(3).await;
    let (old, new) =
        (fleet.policy("old.yaml", &[0, 1], None), fleet.policy("new.yaml", &[0, 1, 2], None));
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let home = shards(&["--policy", old, "--home", "token=t1"]);
    assert!(home.status.success(), "{}", text(&home.stderr));
    assert!(text(&home.stdout).contains("is on s"), "{}", text(&home.stdout));
    let nobody = shards(&["--policy", old, "--home", "user=42"]);
    assert_eq!(nobody.status.code(), Some(1), "no limit counts per user");
    let described = text(&nobody.stderr);
    assert!(described.contains("no subject \"user\"; it has token"), "{described}");
    let twice = shards(&["--policy", old, "--home", "token=t1,token=t2"]);
    assert_eq!(twice.status.code(), Some(1), "{}", text(&twice.stdout));
    assert!(text(&twice.stderr).contains("duplicate \"token\""), "{}", text(&twice.stderr));
    let misspelt = shards(&["--policy", old, "--home", "token=t1,rute=/"]);
    assert_eq!(misspelt.status.code(), Some(1), "{}", text(&misspelt.stdout));

    let plan = shards(&["--policy", old, "--plan", new, "--json"]);
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).unwrap();
    let moved = plan["moved"].as_u64().unwrap();
    assert!((32_000..35_000).contains(&moved), "a third of 100000: {moved}");
    assert!(plan["flows"].as_array().unwrap().iter().all(|flow| flow["to"] == "s2"), "{plan}");
    // The suggested text is valid in the policy file.
    let response = text(&shards(&["--policy", old, "--plan", new]).stdout).to_owned();
    assert!(response.contains("      shards:\n        s0: {}\n        s1: {}\n"), "{response}");
    let same = shards(&["--policy", old, "--plan", old]);
    assert!(text(&same.stdout).contains("there is nothing to do"), "{}", text(&same.stdout));
    let follow = shards(&["--policy", new, "--follow"]);
    assert_eq!(follow.status.code(), Some(1));
    assert!(text(&follow.stderr).contains("no rebalance"), "{}", text(&follow.stderr));
}
