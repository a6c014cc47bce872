//! Servers that are out of memory.

use tollgate_conformance::{Figure, assert_held};
use tollgate_core::{Ask, ChargeId, Cost, Mark, Repeats, StoreError};
use tollgate_redis::StepError;

use super::*;
use crate::kit::on_every_version;
use crate::site::patient;

/// Callers of the window that exists, and as many of windows that do not.
const EACH: u64 = 50;
/// How many calls in vain there may be after memory is there again.
const IN_VAIN: u64 = 1_000;

on_every_version! {
    without_memory_windows_go_on_and_new_keys_are_told
}

async fn without_memory_windows_go_on_and_new_keys_are_told(version: Version) {
    for way in Way::of(version) {
        let server = Server::start_version(version, &["--maxmemory-policy", "noeviction"]).await;
        let client = Client::new(&patient(server.url().parse().unwrap()), *way, 1 << 20).await;
        let mark = client.take(0, 1).await.unwrap().mark;
        server.tell(&["CONFIG", "SET", "maxmemory", "1"]).await;

        let (old, new) = callers_of_both(&client).await;
        let full = LaneError::Step(StepError::Full);
        let once = once(2..=EACH + 1);
        let otherwise = counts(&old).iter().filter(|told| once.get(told.0) != Some(told.1)).count();
        let refused = new.iter().filter(|told| **told == Err(full.clone())).count() as u64;
        assert_held(&[
            Figure::bites("charges refused for want of memory", refused),
            Figure::at_most("units admitted to somebody new", EACH - refused, 0),
            Figure::at_most("counts of who has a window not told once", otherwise as u64, 0),
        ]);
        assert_eq!(counts(&old).len() as u64, EACH, "{way:?}");
        assert_eq!(StoreError::from(full.clone()), StoreError::Full);
        for (repeats, left) in [(Repeats::Impossible, EACH), (Repeats::Guarded, EACH - 1)] {
            let back = client.ask(0, refund(mark, repeats), PATIENCE).await.unwrap();
            assert_eq!((back.given_back, back.used), (1, left), "{way:?}");
        }
        assert_eq!(client.take(9_999, 0).await.unwrap().used, 0, "{way:?}: a look needs no key");

        server.tell(&["CONFIG", "SET", "maxmemory", "0"]).await;
        let mut in_vain = 0;
        while client.take(10_000, 1).await == Err(full.clone()) {
            in_vain += 1;
            assert!(in_vain < IN_VAIN, "{way:?}: still full");
        }
        let lane = &client.store.status()[0];
        assert_eq!((lane.gate, lane.opened), (Gate::Closed, 0), "{way:?}");
        client.assert_sound();
        server.assert_every_key_ends().await;
    }
}

type Told = Vec<Result<Reading, LaneError>>;

/// What callers are told at once: of the window that exists, and each of one that does not.
async fn callers_of_both(client: &Arc<Client>) -> (Told, Told) {
    let (mut old, mut new) = (JoinSet::new(), JoinSet::new());
    for number in 1..=EACH {
        let (one, other) = (Arc::clone(client), Arc::clone(client));
        old.spawn(async move { one.take(0, 1).await });
        new.spawn(async move { other.take(number, 1).await });
    }
    (old.join_all().await, new.join_all().await)
}

fn refund(mark: Mark, repeats: Repeats) -> Ask {
    Ask::Refund { cost: Cost::ONE, mark, id: ChargeId(1), repeats }
}
