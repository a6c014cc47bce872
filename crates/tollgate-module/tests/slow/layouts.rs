//! Functions, scripts and the module use the same keys. A node may change from one of them to
//! another while windows are open.

use tollgate_conformance::PlainHash;
use tollgate_core::algo::{FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket};
use tollgate_core::{
    Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Store, Subject, Timestamp, Value,
    algo::Anchor,
};
use tollgate_redis::RuntimeChoice;

use crate::kit::{Server, Version, on_every_version};
use crate::loaded::{start, store};

on_every_version! {
    the_module_continues_windows_of_scripts_and_back
}

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn limits() -> Vec<Limit> {
    let minute = Millis::from_secs(60);
    let algorithms = [
        Algorithm::FixedWindow(FixedWindow::new(1_000, minute, Anchor::FirstRequest).unwrap()),
        Algorithm::FixedWindow(FixedWindow::new(9_000_000, minute, Anchor::Calendar).unwrap()),
        Algorithm::SlidingWindow(SlidingWindow::new(1_000, minute, Millis::from_secs(1)).unwrap()),
        Algorithm::TwoBucket(TwoBucket::new(1_000, minute).unwrap()),
        Algorithm::SlidingLog(SlidingLog::new(1_000, minute).unwrap()),
        Algorithm::TokenBucket(TokenBucket::new(1_000, minute, 1_000).unwrap()),
    ];
    let named = |(index, algorithm)| Limit::new(&format!("limit{index}"), algorithm).unwrap();
    algorithms.into_iter().enumerate().map(named).collect()
}

async fn the_module_continues_windows_of_scripts_and_back(version: Version) {
    let server = start(version, &[]).await;
    let subject = Subject::new([("user", Value::Clear(b"42"))], &PlainHash);
    let best =
        if version.has_functions() { RuntimeChoice::Function } else { RuntimeChoice::Script };
    let stores = [store(&server, RuntimeChoice::Best).await, store(&server, best).await];
    for limit in limits() {
        let cost = Cost::new(limit.capacity() / 500).unwrap();
        for turn in 1..=100 {
            let operation = Operation::Charge { cost, id: ChargeId(turn) };
            let charge = Charge { limit: &limit, subject: &subject, operation };
            let store = &stores[turn as usize % 2];
            let readings = store.apply(NOW, &[charge]).await.unwrap();
            assert_eq!(readings[0].used, cost.get() * turn as u64, "{limit:?}");
        }
    }
    server.assert_every_key_ends().await;
}

/// On a server without the module, a node with the default choice uses the function. A node that
/// needs tables does not use such a server.
#[tokio::test]
async fn a_server_without_the_module_is_found_before_it_is_written_to() {
    let server = Server::start().await;
    let connection = server.connect().await;
    let keys = tollgate_redis::Keys::new(PlainHash);
    let refused = tollgate_redis::Redis::new(connection, keys, RuntimeChoice::Tables).await;
    assert!(refused.unwrap_err().to_string().contains("unknown command"));
    let found = store(&server, RuntimeChoice::Best).await;
    assert_eq!(found.runtime(), tollgate_redis::StepRuntime::Function);
}
