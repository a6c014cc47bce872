//! Random cells that the server joins, compared with the same join in Rust. The tests compare every
//! number of every cell.

use tollgate_conformance::trace::{random_limit, seeds};
use tollgate_conformance::{PlainHash, Random};
use tollgate_core::decide::{ReservedCell, join};
use tollgate_core::{
    Algorithm, Cell, CellKey, CellTransfer, Charge, ChargeId, Cost, Limit, MAX_EXACT, Millis,
    OnExpiry, Operation, Reservation, Store, StoredState, Subject, Timestamp, Value, assess,
};
use tollgate_redis::Redis;

use crate::kit::{Version, on_every_version};
use crate::shard::Way;
use crate::transfer::cells::two_accounts;
use crate::transfer::store;

/// The number of rounds for each way. With two joins for each pair, all four versions together make
/// 190,000 joins.
const ROUNDS: u64 = 63;
const PAIRS: u64 = 100;

/// A time in the year 2023, in milliseconds since the Unix epoch.
const NOW: u64 = 1_700_000_000_123;

on_every_version! {
    cells_are_joined_as_in_rust
}

async fn cells_are_joined_as_in_rust(version: Version) {
    for (way, first) in Way::of(version).iter().zip([8_000_000, 9_000_000, 10_000_000, 11_000_000])
    {
        let server = way.start(version, &[]).await;
        let store = store(&server, way.choice()).await;
        assert_eq!(store.runtime(), way.runs());
        let mut kept = 0;
        for seed in seeds(first, ROUNDS) {
            kept += Round::new(seed).run(&store).await;
        }
        assert!(kept > ROUNDS * PAIRS / 2, "only {kept} cells were in force");
        server.assert_every_key_ends().await;
    }
}

/// Pairs of cells that are joined at the same times.
struct Round {
    seed: u64,
    pairs: Vec<Pair>,
    /// The times at which the first and the second cell of each pair are joined.
    moments: [Timestamp; 2],
}

struct Pair {
    limit: Limit,
    subject: Subject,
    cells: [Cell; 2],
}

impl Pair {
    fn random(random: &mut Random, seed: u64, number: u64, now: u64) -> Self {
        let skew_max = Millis::from_secs(random.one_of(&[60, 300, 3_600]));
        let limit = random_limit(random, number, "joined").with_skew_max(skew_max);
        let pairs = [("seed", seed), ("number", number)].map(|(name, n)| (name, n.to_be_bytes()));
        let pairs = pairs.iter().map(|(name, bytes)| (*name, Value::Clear(&bytes[..])));
        let subject = Subject::new(pairs, &PlainHash);
        let (one, other) = two_accounts(random, &limit, now);
        let cells = [one, other].map(|cell| reserved(random, &limit, cell, now));
        Self { limit, subject, cells }
    }

    fn place(&self) -> CellKey<'_> {
        CellKey { limit: &self.limit, subject: &self.subject }
    }

    /// Returns the cell after both joins, or `None` if the cell is not valid at the time `now`.
    fn joined(&self, [before, now]: [Timestamp; 2]) -> Option<Cell> {
        let [one, other] = self.cells.clone();
        let cell = join(None, one, &self.limit, before);
        let cell = join(cell, other, &self.limit, now)?;
        let found = assess(Some(&cell), &self.limit, Cost::PEEK, now).found;
        (found == StoredState::Present).then_some(cell)
    }
}

/// Returns `cell` with random reservations. Both cells of a pair may have some reservations in
/// common.
fn reserved(random: &mut Random, limit: &Limit, cell: Cell, now: u64) -> Cell {
    let is_kept = Cell::from_bytes(&cell.to_bytes()).is_some();
    let has_leases = matches!(limit.algorithm(), Algorithm::Concurrency(_));
    if !is_kept || has_leases || random.chance(50) {
        return cell;
    }
    let position = assess(Some(&cell), limit, Cost::PEEK, Timestamp::from_millis(now)).position;
    let first = random.within(0..=2);
    let mut reservations: Vec<Reservation> = (first..=first + random.within(0..=2))
        .map(|number| Reservation {
            id: ChargeId(number.into()),
            units: random.within(1..=4),
            position,
            until: Timestamp::from_millis(now.saturating_add(random.one_of(&[0, 1, 50, 5_000]))),
            on_expiry: random.one_of(&[OnExpiry::Release, OnExpiry::Release, OnExpiry::Charge]),
        })
        .collect();
    reservations.sort_by_key(|reservation| reservation.until);
    Cell::Reserved(Box::new(ReservedCell { cell, reservations }))
}

impl Round {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let reach = random.one_of(&[0, 0, 1, 50, 1_000]);
        let before = match random.within(0..=9) {
            0 => random.within(0..=2_000),
            1 | 2 => MAX_EXACT - random.within(0..=2_000),
            _ => NOW,
        };
        let now = before.saturating_add(random.within(0..=reach)).min(MAX_EXACT);
        let pairs = (0..PAIRS).map(|number| Pair::random(&mut random, seed, number, now)).collect();
        Self { seed, pairs, moments: [before, now].map(Timestamp::from_millis) }
    }

    /// Makes both joins, and checks the result. Returns how many pairs have a valid cell after both
    /// joins.
    async fn run(&self, store: &Redis) -> u64 {
        let [before, now] = self.moments;
        self.join(store, before, 0).await;
        self.join(store, now, 1).await;
        let kept = self.compare(store).await;
        self.join(store, now, 1).await;
        assert_eq!(self.compare(store).await, kept, "joined once more");
        self.compare_readings(store).await;
        kept
    }

    async fn join(&self, store: &Redis, now: Timestamp, which: usize) {
        let cell = |pair: &Pair| pair.cells[which].clone();
        let cells: Vec<_> = self.pairs.iter().map(|pair| (pair.place(), cell(pair))).collect();
        store.join(now, &cells).await.expect("cells of this version");
    }

    async fn compare(&self, store: &Redis) -> u64 {
        let [_, now] = self.moments;
        let places: Vec<_> = self.pairs.iter().map(Pair::place).collect();
        let cells = store.cells(now, &places).await.expect("an answer");
        assert_eq!(cells.len(), self.pairs.len());
        let mut kept = 0;
        for (pair, cell) in self.pairs.iter().zip(cells) {
            let right = pair.joined(self.moments);
            let (seed, limit, cells) = (self.seed, &pair.limit, &pair.cells);
            assert_eq!(cell, right, "TOLLGATE_SEED={seed} {:?} {limit:?} {cells:?}", self.moments);
            kept += u64::from(right.is_some());
        }
        kept
    }

    /// Asserts that the step returns the same readings for the cells as the Rust code.
    async fn compare_readings(&self, store: &Redis) {
        let [_, now] = self.moments;
        let operation = Operation::Peek { cost: Cost::ONE };
        for pair in &self.pairs {
            let Some(cell) = pair.joined(self.moments) else { continue };
            let charge = Charge { limit: &pair.limit, subject: &pair.subject, operation };
            let reading = store.apply(now, &[charge]).await.expect("an answer")[0];
            let right = assess(Some(&cell), &pair.limit, Cost::ONE, now);
            assert_eq!(reading, right, "TOLLGATE_SEED={} {:?} {cell:?}", self.seed, pair.limit);
        }
    }
}
