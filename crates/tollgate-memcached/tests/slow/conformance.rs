//! Runs the conformance suite of all stores on a real server, in both layouts.

use crate::kit::{Server, connected, subject, window};
use tollgate_conformance::trace::seeds;
use tollgate_conformance::{Trace, check, check_charges, run_trace};
use tollgate_core::{Charge, ChargeId, Cost, Millis, Operation, Store, StoreError, Timestamp};
use tollgate_memcached::{Layout, Memcached, ServerSettings};

/// The number of random traces of 48 operations each. The traces run in addition to the traces of
/// the suite.
const TRACES: u64 = 300;

#[tokio::test]
async fn the_suite_passes_in_one_item() {
    let (server, store) = started(Layout::Cell).await;
    check(&store, "suite").await;
    spanning_traces_pass(&server, &store).await;
}

#[tokio::test]
async fn the_suite_passes_in_two_items() {
    let (server, store) = started(Layout::Pairs).await;
    check_charges(&store, "suite").await;
    spanning_traces_pass(&server, &store).await;
}

/// The older limiter's layout stores only two numbers and cannot store reservations.
#[tokio::test]
async fn a_window_in_two_items_is_not_reserved() {
    let (_server, store) = started(Layout::Pairs).await;
    let (limit, subject) = (window("reads", 10, Millis::from_secs(60)), subject("alice"));
    let now = Timestamp::from_millis(1_700_000_000_000);
    let cost = Cost::new(3).unwrap();
    let apply = |operation| {
        let (store, limit, subject) = (&store, &limit, &subject);
        async move { store.apply(now, &[Charge { limit, subject, operation }]).await }
    };
    let (id, until) = (ChargeId(1), now.after(Millis::from_secs(5)));
    let reserved = apply(Operation::Reserve { cost, id, until }).await;
    assert!(matches!(reserved, Err(StoreError::Full)), "{reserved:?}");
    let taken = apply(Operation::Charge { cost, id: ChargeId(2) }).await.unwrap();
    assert_eq!(taken.iter().map(|reading| reading.used).collect::<Vec<_>>(), [3], "nothing held");
}

async fn started(layout: Layout) -> (Server, Memcached) {
    let server = Server::start();
    let store = connected(&ServerSettings { layout, ..server.settings() }).await;
    (server, store)
}

async fn spanning_traces_pass(server: &Server, store: &Memcached) {
    for seed in seeds(20_000, TRACES) {
        let trace = Trace::spanning(seed);
        if let Err(difference) = run_trace(store, &trace, "spanning").await {
            panic!("{difference}");
        }
    }
    assert_every_item_ends(server);
    let status = store.status();
    // Of two concurrent refunds of one item, the second refund conflicts with the first refund. The
    // test produces two such conflicts for each of two algorithms.
    assert_eq!(
        (status.cas_conflicts, status.contended, status.unrefunded),
        (4, 0, 0),
        "{status:?}"
    );
}

fn assert_every_item_ends(server: &Server) {
    let items = server.execute("lru_crawler metadump all");
    assert!(items.len() > 100, "{} items", items.len());
    let endless: Vec<_> = items.iter().filter(|item| item.contains("exp=-1 ")).collect();
    assert!(endless.is_empty(), "{endless:?}");
}
