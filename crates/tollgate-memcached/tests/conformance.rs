//! The suite that every store passes, in both layouts, on a real server.

mod kit;

use kit::{Server, connected};
use tollgate_conformance::trace::seeds;
use tollgate_conformance::{Trace, check, run_trace};
use tollgate_memcached::{Layout, ServerSettings};

/// Traces of 48 operations each, beside those of the suite.
const TRACES: u64 = 300;

#[tokio::test]
async fn the_suite_passes_in_one_item() {
    the_suite_passes(Layout::Cell).await;
}

#[tokio::test]
async fn the_suite_passes_in_two_items() {
    the_suite_passes(Layout::Pairs).await;
}

async fn the_suite_passes(layout: Layout) {
    let server = Server::start();
    let store = connected(&ServerSettings { layout, ..server.settings() }).await;
    check(&store, "suite").await;
    for seed in seeds(20_000, TRACES) {
        let trace = Trace::spanning(seed);
        if let Err(difference) = run_trace(&store, &trace, "spanning").await {
            panic!("{difference}");
        }
    }
    assert_every_item_ends(&server);
    let status = store.status();
    assert_eq!((status.outrun, status.contended, status.stranded), (0, 0, 0), "{status:?}");
}

fn assert_every_item_ends(server: &Server) {
    let items = server.tell("lru_crawler metadump all");
    assert!(items.len() > 100, "{} items", items.len());
    let endless: Vec<_> = items.iter().filter(|item| item.contains("exp=-1 ")).collect();
    assert!(endless.is_empty(), "{endless:?}");
}
