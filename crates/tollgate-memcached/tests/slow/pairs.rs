//! The layout of an older limiter with two items, shared with programs that do not use tags.

use crate::kit::{PATIENCE, Server, connected, subject, take, window};
use tollgate_conformance::{Figure, PlainHash, assert_held};
use tollgate_core::{Limit, Millis, Reading, StoredState, Timestamp};
use tollgate_memcached::{Keys, Layout, Memcached, ServerSettings};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);
const HOUR: u64 = 3_600_000;

#[tokio::test]
async fn old_programs_read_and_count_as_they_always_did() {
    let server = Server::start();
    let store = pairs(&server).await;
    let (limit, name) = (limit(), name());
    for used in 1..=3 {
        assert_eq!(charge(&store, &limit, NOW).await.used, used);
    }
    assert_eq!(server.execute(&format!("mg {name} v")), ["VA 1", "3"]);
    // The window ends at …3600.123. A client that waits until the reported second is admitted.
    assert_eq!(server.execute(&format!("mg {name}:reset_at v")), ["VA 10", "1700003601"]);
    assert_eq!(server.execute(&format!("incr {name} 5")), ["8"]);
    let reading = charge(&store, &limit, NOW).await;
    assert_eq!((reading.used, reading.full_reset_at.as_millis()), (9, NOW.as_millis() + HOUR));
}

#[tokio::test]
async fn a_window_that_an_old_program_opened_goes_on() {
    let server = Server::start();
    let store = pairs(&server).await;
    let (limit, name) = (limit(), name());
    server.execute(&format!("ms {name} 2 T3600\r\n17"));
    server.execute(&format!("ms {name}:reset_at 10 T3600\r\n1700001000"));
    let reading = charge(&store, &limit, NOW).await;
    assert_eq!((reading.used, reading.full_reset_at.as_millis()), (18, 1_700_001_000_000));
    // After the end of the window, the store opens another window, in which the old count does not
    // count.
    let later = Timestamp::from_millis(1_700_001_000_000);
    assert_eq!(charge(&store, &limit, later).await.used, 1);
    assert_eq!(server.execute(&format!("mg {name} v")), ["VA 1", "1"]);
}

#[tokio::test]
async fn a_lost_item_is_noticed_where_it_can_be() {
    let server = Server::start();
    let store = pairs(&server).await;
    let (limit, name) = (limit(), name());
    for used in 1..=3 {
        assert_eq!(charge(&store, &limit, NOW).await.used, used);
    }
    server.execute(&format!("md {name}:reset_at"));
    assert_eq!(charge(&store, &limit, NOW).await.used, 1, "the window began anew");
    assert_eq!(store.status().torn, 1);
    server.execute(&format!("md {name}"));
    assert_eq!(charge(&store, &limit, NOW).await.used, 1, "its count is lost");
}

#[tokio::test]
async fn foreign_values_count_as_none() {
    let server = Server::start();
    let store = pairs(&server).await;
    let (limit, name) = (limit(), name());
    server.execute(&format!("ms {name} 3 T3600\r\nabc"));
    server.execute(&format!("ms {name}:reset_at 3 T3600\r\n-17"));
    let reading = charge(&store, &limit, NOW).await;
    assert_held(&[
        Figure::fault_seen("foreign values told", (reading.found == StoredState::Discarded).into()),
        Figure::at_most("units of theirs that counted", reading.used - 1, 0),
    ]);
    assert_eq!(charge(&store, &limit, NOW).await.used, 2);
}

fn limit() -> Limit {
    window("core", 5_000, Millis::new(HOUR))
}

fn name() -> String {
    let name = Keys::new(PlainHash).name(&limit(), &subject("a"));
    String::from_utf8(name.into()).unwrap()
}

async fn pairs(server: &Server) -> Memcached {
    connected(&ServerSettings { layout: Layout::Pairs, ..server.settings() }).await
}

async fn charge(store: &Memcached, limit: &Limit, now: Timestamp) -> Reading {
    let subject = subject("a");
    store.apply_within(now, &[take(limit, &subject)], PATIENCE).await.unwrap()[0]
}
