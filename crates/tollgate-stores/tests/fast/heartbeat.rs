//! Heartbeats and the shard maps that the nodes publish.

use std::task::{Context, Waker};

use proptest::prelude::*;
use tollgate::model::{Charge, ChargeId, Millis, Readings, Store, StoreError, Timestamp};
use tollgate::store::Memory;
use tollgate_stores::rebalance::{HEARTBEAT_TTL, Heartbeat, HeartbeatCounts};

use crate::rebalance::Fleet;
use crate::setup::{NOW, key};

fn node(id: u128) -> Heartbeat {
    Heartbeat::new(key(), ChargeId(id)).unwrap()
}

/// A remote shard. Between any two calls of a node, the shard may execute calls of other nodes.
struct Remote<'a>(&'a Memory);

impl Store for Remote<'_> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        tokio::task::yield_now().await;
        self.0.apply_now(now, charges)
    }
}

proptest! {
    /// Several nodes publish one of two maps at the same time, with their calls in any order. No
    /// node is counted as a node with a third map, even if nodes start and stop.
    #[test]
    fn nodes_that_attend_at_once_are_of_the_maps_that_they_say(
        turns in prop::collection::vec((0..3_usize, prop_oneof![Just(0), Just(3_300), 1..9_999_u64]), 60),
        uses_old in any::<bool>(),
    ) {
        let fleet = Fleet::new();
        let (old, new) = (fleet.before().version(), fleet.after().version());
        let shard = Remote(&fleet.0[0]);
        let nodes = [node(1), node(2), node(3)];
        let attend = |index: usize, now| {
            let (own, other) = if uses_old && index == 0 { (old, new) } else { (new, old) };
            Box::pin(nodes[index].beat(&shard, now, own, other))
        };
        let mut under_way = [const { None }; 3];
        let mut now = NOW;
        for (index, later) in turns {
            // Concurrent heartbeats have the same start time. A new round starts when all
            // heartbeats of a round have ended.
            if under_way.iter().all(Option::is_none) {
                now = now.after(Millis::new(later));
            }
            let mut attending = under_way[index].take().unwrap_or_else(|| attend(index, now));
            match attending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                std::task::Poll::Ready(counts) => {
                    let HeartbeatCounts { own_map, other_map, all } = counts.unwrap();
                    prop_assert!(all <= own_map + other_map, "{all} of {own_map} and {other_map}");
                }
                std::task::Poll::Pending => under_way[index] = Some(attending),
            }
        }
    }
}

#[tokio::test]
async fn heartbeats_count_nodes_and_forgets_those_that_are_gone() {
    let fleet = Fleet::new();
    let (old, new) = (fleet.before().version(), fleet.after().version());
    let shard = &*fleet.0[0];
    let node = |id| Heartbeat::new(key(), ChargeId(id)).unwrap();
    node(1).beat(shard, NOW, old, new).await.unwrap();
    node(2).beat(shard, NOW, old, new).await.unwrap();
    let now = NOW.after(Millis::from_secs(5));
    let counts = node(3).beat(shard, now, new, old).await.unwrap();
    assert_eq!(counts, HeartbeatCounts { own_map: 1, other_map: 2, all: 3 });
    // The second node changes its map. The first node stopped, and its heartbeat expires.
    node(2).beat(shard, now, new, old).await.unwrap();
    let later = NOW.after(HEARTBEAT_TTL);
    let counts = node(3).beat(shard, later, new, old).await.unwrap();
    assert_eq!(counts, HeartbeatCounts { own_map: 2, other_map: 0, all: 2 });
}
