//! Partitions on several servers. One of the servers fails over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate::model::{
    Admission, Cell, CellKey, Charge, Millis, Readings, ReplicationEpochs, Store, StoreError,
    Subject, Timestamp,
};
use tollgate::store::Memory;
use tollgate_stores::atomic::{PartitionedCells, PartitionedEpochs};
use tollgate_stores::failover_replay::{DEFAULT_RETENTION, ReplayCounts};
use tollgate_stores::{Atomic, FailoverReplay, Partitions};

use crate::promoted::{Promoted, Servers};
use crate::setup::{NOW, apply_one, charge, fixed, of_every_kind, take, user};

const QUOTA: u64 = 100;

/// Eight partitions on two primaries. The partitions alternate between the primaries.
struct Slots([Promoted; 2]);

impl Slots {
    fn on(servers: &[Arc<Servers>; 2]) -> Self {
        Self(servers.each_ref().map(Promoted::on))
    }

    fn keeper(&self, partition: usize) -> &Promoted {
        &self.0[partition % 2]
    }

    /// Converts the epoch `epoch` of the primary at the index `place` to a number that no other
    /// primary uses.
    fn number(place: usize, epoch: u64) -> u64 {
        2 * (epoch + 1) + place as u64
    }
}

impl Partitions for Slots {
    fn partition(&self, subject: &Subject) -> usize {
        subject.as_bytes().iter().map(|byte| usize::from(*byte)).sum::<usize>() % 8
    }

    async fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        self.keeper(partition).apply(now, charges).await
    }
}

impl PartitionedCells for Slots {
    async fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        assert!(places.iter().all(|place| self.partition(place.subject) == partition));
        tollgate::model::CellTransfer::cells(self.keeper(partition), now, places).await
    }

    async fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> Result<(), StoreError> {
        assert!(cells.iter().all(|(place, _)| self.partition(place.subject) == partition));
        tollgate::model::CellTransfer::join(self.keeper(partition), now, cells).await
    }
}

impl PartitionedEpochs for Slots {
    fn epoch_at(&self, partition: usize) -> u64 {
        Self::number(partition % 2, self.keeper(partition).epoch())
    }

    fn is_paused_at(&self, partition: usize) -> bool {
        self.keeper(partition).holds()
    }

    fn outage_at(&self, partition: usize) -> Millis {
        self.keeper(partition).outage()
    }

    fn held(&self) -> Vec<usize> {
        (0..2).filter(|partition| self.is_paused_at(*partition)).collect()
    }

    fn release(&self, epoch: u64) {
        for (place, keeper) in self.0.iter().enumerate() {
            if epoch == Self::number(place, keeper.epoch()) {
                keeper.release(keeper.epoch());
            }
        }
    }
}

type Node = Atomic<FailoverReplay<Slots>>;

fn nodes<const N: usize>() -> ([Arc<Servers>; 2], [Node; N]) {
    let servers = [(); 2].map(|()| Arc::<Servers>::default());
    let nodes = [(); N].map(|()| Atomic::new(FailoverReplay::new(Slots::on(&servers))));
    (servers, nodes)
}

async fn used(node: &Node, subject: &Subject, limit: &tollgate::model::Limit, id: u128) -> u64 {
    apply_one(node, NOW, limit, subject, take(1, id)).await.unwrap().used
}

/// Returns how many of `users` belong to the primary at the index `place`.
fn kept(node: &Node, users: u64, place: usize) -> u64 {
    (0..users).filter(|number| node.partitions().partition(&user(*number)) % 2 == place).count()
        as u64
}

#[tokio::test]
async fn a_failover_is_repaired_at_the_homes_of_the_primary_that_died_alone() {
    const USERS: u64 = 40;
    for limit in of_every_kind(QUOTA) {
        let (servers, [node]) = nodes();
        for number in 0..USERS {
            assert_eq!(used(&node, &user(number), &limit, 1).await, 1);
        }
        for server in &servers {
            server.cut();
        }
        for number in 0..USERS {
            assert_eq!(used(&node, &user(number), &limit, 2).await, 2);
        }
        servers[0].promote(Memory::default());
        for number in 0..USERS {
            assert_eq!(used(&node, &user(number), &limit, 3).await, 3, "{limit:?}");
        }
        let lost = kept(&node, USERS, 0);
        assert!((1..USERS).contains(&lost));
        let replayed = ReplayCounts { replays: 1, limits: lost, units: lost, abandoned: 0 };
        assert_eq!(node.partitions().replayed(), replayed, "{limit:?}");
        assert_eq!(node.partitions().store().0[1].joined.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn what_was_held_for_a_call_over_several_homes_and_refunded_is_not_charged_again() {
    let (servers, [node]) = nodes();
    let (wide, narrow) = (fixed("wide", QUOTA), fixed("narrow", 1));
    let place = |place| {
        (0..).map(user).find(|user| node.partitions().partition(user) % 2 == place).unwrap()
    };
    let (one, other) = (place(0), place(1));
    servers[0].cut();
    for id in 1..=5 {
        let charges = [charge(&wide, &one, take(1, id)), charge(&narrow, &other, take(1, id))];
        let readings = node.apply(NOW, &charges).await.unwrap();
        assert_eq!(readings.all_admitted(), id == 1);
        assert_eq!(readings[0].admission, Admission::Now);
    }
    servers[0].promote(Memory::default());
    assert_eq!(used(&node, &one, &wide, 6).await, 2);
}

#[tokio::test]
async fn a_node_that_nobody_asks_repairs_every_primary() {
    const USERS: u64 = 20;
    let (servers, [busy, idle]) = nodes();
    let limit = fixed("core", QUOTA);
    for server in &servers {
        server.cut();
    }
    for number in 0..USERS {
        used(&busy, &user(number), &limit, 1).await;
        used(&idle, &user(number), &limit, 2).await;
    }
    for server in &servers {
        server.promote(Memory::default());
    }
    idle.partitions().replay_partitions(NOW).await.unwrap();
    assert_eq!(idle.partitions().replayed().units, 2 * USERS);
    for number in 0..USERS {
        assert_eq!(used(&busy, &user(number), &limit, 3).await, 3);
    }
}

/// The time without a primary does not count towards the age of charges. Charges from before a long
/// outage are still replayed.
#[tokio::test]
async fn the_time_without_a_primary_does_not_count() {
    let agreed_after = Millis::from_secs(20);
    for (outage, used_after) in [(agreed_after, 2), (Millis::ZERO, 1)] {
        let (servers, [node]) = nodes();
        let limit = fixed("core", QUOTA);
        for (server, primary) in servers.iter().zip(&node.partitions().store().0) {
            server.cut();
            primary.outage.store(outage.get(), Ordering::SeqCst);
        }
        used(&node, &user(1), &limit, 1).await;
        for server in &servers {
            server.promote(Memory::default());
        }
        let later = NOW.after(DEFAULT_RETENTION).after(agreed_after);
        let reading = apply_one(&node, later, &limit, &user(1), take(1, 2)).await.unwrap();
        assert_eq!(reading.used, used_after, "{outage:?}");
    }
}
