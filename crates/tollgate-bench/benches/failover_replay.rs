//! How much the log for failover replay adds to the time of a decision:
//! `cargo bench -p tollgate-bench --bench failover_replay`.
//!
//! The wrapper with the log is around a memory store, which answers at once. The difference to the
//! memory store alone is therefore the cost of the wrapper.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use divan::Bencher;
use divan::counter::ItemsCount;
use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::{
    Algorithm, Cell, CellKey, CellTransfer, Charge, ChargeId, Cost, Limit, Millis, Operation,
    Readings, ReplicationEpochs, Store, StoreError, Subject, Timestamp, Value,
};
use tollgate::store::Memory;
use tollgate::{Clock, HashKey, SystemClock};
use tollgate_bench::draw;
use tollgate_stores::FailoverReplay;

const DECISIONS: usize = 10_000;
/// The numbers of subjects that are measured: one, as many as the log can contain, and far more.
const SUBJECTS: [u32; 3] = [1, 8_192, 1_000_000];

fn main() {
    divan::main();
}

#[divan::bench(args = SUBJECTS)]
fn bare(bencher: Bencher<'_, '_>, subjects: u32) {
    charges(bencher, subjects, &Lasting::default());
}

#[divan::bench(args = SUBJECTS)]
fn remembered(bencher: Bencher<'_, '_>, subjects: u32) {
    charges(bencher, subjects, &FailoverReplay::new(Lasting::default()));
}

/// Charges a fixed window that has a quota larger than the benchmark can use up.
fn charges(bencher: Bencher<'_, '_>, subjects: u32, store: &impl Store) {
    let window = FixedWindow::new(1 << 40, Millis::from_secs(3_600), Anchor::FirstRequest);
    let limit = Limit::new("core", Algorithm::FixedWindow(window.unwrap())).unwrap();
    let key = HashKey::from_secret(b"of the bench");
    let drawn = draw::uniform(subjects, DECISIONS, 1);
    let subject =
        |number: &u32| Subject::new([("user", Value::Clear(&number.to_le_bytes()))], &key);
    let subjects: Vec<_> = drawn.iter().map(subject).collect();
    let now = SystemClock.now();
    bencher.counter(ItemsCount::new(DECISIONS)).bench_local(|| {
        for subject in &subjects {
            let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
            let charge = Charge { limit: &limit, subject, operation };
            assert!(at_once(store.apply(now, &[charge])).unwrap().all_admitted());
        }
    });
}

/// Returns the output of a future that is ready at its first poll.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the store in memory answers at once"),
    }
}

/// A memory store that never loses data, so its state has a single replication epoch.
#[derive(Debug, Default)]
struct Lasting(Memory);

impl Store for Lasting {
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        self.0.apply(now, charges)
    }
}

impl CellTransfer for Lasting {
    fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.0.cells(now, places)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.0.join(now, cells)
    }
}

impl ReplicationEpochs for Lasting {
    fn epoch(&self) -> u64 {
        1
    }

    fn holds(&self) -> bool {
        false
    }

    fn outage(&self) -> Millis {
        Millis::ZERO
    }

    fn release(&self, _epoch: u64) {}
}
