//! Servers that keep losing the function or script of decisions.

use std::sync::Arc;

use crate::redis::fleet::Fleet;
use crate::redis::load::{Load, used};
use crate::support::world::Proxy;

const LIMITS: &str = "
limits: { core: { quota: 1_000_000, window: 1h, per: token } }
rules: [{ limits: core }]
answers: { headers: github }";

/// The number of times that each server loses the function or script, and the least number of
/// requests between two losses. If a server lost the function faster than it is called, nodes would
/// load the function again until their retries are used up.
const TIMES: usize = 100;
const BETWEEN: usize = 2;

#[tokio::test]
async fn functions_flushed_under_load_fail_no_request() {
    forgotten("FUNCTION", "function").await;
}

#[tokio::test]
async fn scripts_flushed_under_load_fail_no_request() {
    forgotten("SCRIPT", "script").await;
}

/// Makes both shards lose the content of `container` under load, and checks that every request was
/// answered and counted once.
async fn forgotten(container: &str, step: &str) {
    let fleet = Fleet::start().await;
    let proxy =
        Arc::new(Proxy::start(&fleet.policy(LIMITS, &format!("deadline: 10s, scripting: {step}"))));
    let tokens = [fleet.token_on(0, &proxy).await, fleet.token_on(1, &proxy).await];
    let load = Load::start(&proxy, &tokens);
    for _ in 0..TIMES {
        for primary in &fleet.primaries {
            primary.execute(&[container, "FLUSH"]).await;
        }
        load.passes(BETWEEN);
    }
    let answers = load.stop();
    assert!(answers.iter().all(|(_, answer)| answer.status == 200));
    for shard in [0, 1] {
        let used = used(&answers, shard);
        let first = used[0];
        assert_eq!(used, (first..first + used.len() as u64).collect::<Vec<_>>());
    }
}
