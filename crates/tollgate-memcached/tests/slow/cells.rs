//! Tests that subjects keep their usage when they move between two servers.

use crate::kit::{PATIENCE, Server, connected, subject, take, window};
use tollgate_conformance::trace::random_limit;
use tollgate_conformance::{PlainHash, Random};
use tollgate_core::store::{CellKey, CellTransfer};
use tollgate_core::{Admission, Charge, Limit, Millis, Subject, Timestamp, Value};
use tollgate_memcached::{Layout, Memcached, ServerSettings};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

#[tokio::test]
async fn a_state_that_moves_is_the_same_there() {
    let (one, other) = (Server::start(), Server::start());
    let from = store(&one, Layout::Pairs).await;
    let to = store(&other, Layout::Cell).await;
    let mut random = Random::new(7);
    for kind in 0..70 {
        let limit = random_limit(&mut random, kind, "limit");
        let name = kind.to_string();
        let subject = Subject::new([("kind", Value::Clear(name.as_bytes()))], &PlainHash);
        let place = CellKey { limit: &limit, subject: &subject };
        let charge: [Charge<'_>; 1] = [take(&limit, &subject)];
        let taken = from.apply_within(NOW, &charge, PATIENCE).await.unwrap();
        assert_eq!(taken[0].admission, Admission::Now, "{limit:?}");
        let cells = from.cells(NOW, &[place]).await.unwrap();
        let cell = cells[0].clone().unwrap_or_else(|| panic!("no state of {limit:?}"));
        for _ in 0..2 {
            to.join(NOW, &[(place, cell.clone())]).await.unwrap();
            assert_eq!(to.cells(NOW, &[place]).await.unwrap(), [Some(cell.clone())], "{limit:?}");
        }
    }
}

#[tokio::test]
async fn the_larger_of_two_accounts_stands() {
    let server = Server::start();
    let (limit, subject) = (window("core", 10, Millis::from_secs(60)), subject("a"));
    let place = CellKey { limit: &limit, subject: &subject };
    let store = store(&server, Layout::Pairs).await;
    assert_eq!(store.cells(NOW, &[place]).await.unwrap(), [None]);
    let one = used_up_to(&store, &limit, &subject, 1).await;
    let three = used_up_to(&store, &limit, &subject, 3).await;
    store.join(NOW, &[(place, one)]).await.unwrap();
    assert_eq!(store.cells(NOW, &[place]).await.unwrap(), [Some(three)]);
    let over = NOW.after(Millis::from_secs(60));
    assert_eq!(store.cells(over, &[place]).await.unwrap(), [None], "it counts no more");
}

async fn used_up_to(
    store: &Memcached,
    limit: &Limit,
    subject: &Subject,
    used: u64,
) -> tollgate_core::Cell {
    let charges = [take(limit, subject)];
    while store.apply_within(NOW, &charges, PATIENCE).await.unwrap()[0].used < used {}
    store.cells(NOW, &[CellKey { limit, subject }]).await.unwrap()[0].clone().unwrap()
}

async fn store(server: &Server, layout: Layout) -> Memcached {
    connected(&ServerSettings { layout, ..server.settings() }).await
}
