//! A limit, its cell and its admitted charges, on which the tests of algorithms operate.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Deduplication, Limit, Millis,
    Operation, Reading, Refusals, Timestamp, assess, decide,
};

/// Returns the configuration with `cases` random cases for each test. A failed case is stored in a
/// file next to the test.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let regressions =
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fast/laws/proptest-regressions.txt");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..ProptestConfig::default()
    }
}

/// The start time in ms. It is not a multiple of most windows.
pub(crate) const START: u64 = 1_700_000_000_123;

/// An operation of a test. The clock never steps back.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Take {
        after: u64,
        cost: u64,
    },
    /// Refunds the admitted charge with this number, unless it was refunded before.
    Refund {
        after: u64,
        of: usize,
    },
}

pub(crate) fn acts() -> impl Strategy<Value = Vec<Act>> {
    let after = || prop_oneof![4 => Just(0_u64), 2 => Just(1), 4 => 0..40_u64, 1 => 90..110_u64];
    let cost = prop_oneof![1 => Just(0_u64), 6 => Just(1), 3 => 1..6_u64, 1 => 5..12_u64];
    let take = (after(), cost).prop_map(|(after, cost)| Act::Take { after, cost });
    let refund = (after(), 0..12_usize).prop_map(|(after, of)| Act::Refund { after, of });
    prop::collection::vec(prop_oneof![4 => take, 1 => refund], 1..60)
}

pub(crate) fn fixed_window() -> impl Strategy<Value = Algorithm> {
    let anchor = prop_oneof![Just(Anchor::FirstRequest), Just(Anchor::Calendar)];
    (1..12_u64, 1..120_u64, anchor).prop_map(|(quota, window, anchor)| {
        Algorithm::FixedWindow(FixedWindow::new(quota, Millis::new(window), anchor).unwrap())
    })
}

pub(crate) fn sliding_window() -> impl Strategy<Value = Algorithm> {
    (1..12_u64, 1..120_u64, 1..120_u64).prop_map(|(quota, window, precision)| {
        let precision = Millis::new(precision.min(window));
        let window = Millis::new(window);
        Algorithm::SlidingWindow(SlidingWindow::new(quota, window, precision).unwrap())
    })
}

pub(crate) fn two_bucket() -> impl Strategy<Value = Algorithm> {
    (1..12_u64, 1..120_u64).prop_map(|(quota, window)| {
        Algorithm::TwoBucket(TwoBucket::new(quota, Millis::new(window)).unwrap())
    })
}

pub(crate) fn sliding_log() -> impl Strategy<Value = Algorithm> {
    (1..12_u64, 1..120_u64).prop_map(|(quota, window)| {
        Algorithm::SlidingLog(SlidingLog::new(quota, Millis::new(window)).unwrap())
    })
}

pub(crate) fn token_bucket() -> impl Strategy<Value = Algorithm> {
    (1..12_u64, 1..120_u64, 1..12_u64).prop_map(|(quota, window, burst)| {
        Algorithm::TokenBucket(TokenBucket::new(quota, Millis::new(window), burst).unwrap())
    })
}

pub(crate) fn concurrency() -> impl Strategy<Value = Algorithm> {
    (1..12_u64, 1..120_u64).prop_map(|(quota, lease)| {
        Algorithm::Concurrency(Concurrency::new(quota, Millis::new(lease)).unwrap())
    })
}

pub(crate) fn any_algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        fixed_window(),
        sliding_window(),
        two_bucket(),
        sliding_log(),
        token_bucket(),
        concurrency()
    ]
}

/// A charge that was admitted.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) at: u64,
    pub(crate) cost: u64,
    pub(crate) position: ChargePosition,
    pub(crate) id: u128,
    pub(crate) refunded: Option<u64>,
}

impl Admitted {
    /// Returns the units of the charge that were not refunded.
    pub(crate) fn net(&self) -> u64 {
        self.cost - self.refunded.unwrap_or(0)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) limit: Limit,
    pub(crate) cell: Option<Cell>,
    pub(crate) now: u64,
    pub(crate) admitted: Vec<Admitted>,
    operations: u128,
}

impl World {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        let limit = Limit::new("law", algorithm).unwrap();
        Self { limit, cell: None, now: START, admitted: Vec::new(), operations: 0 }
    }

    pub(crate) fn counting_refusals(mut self) -> Self {
        let counted = self.limit.clone().with_refusals(Refusals::Counted);
        self.limit = counted.unwrap_or(self.limit);
        self
    }

    pub(crate) fn act(&mut self, act: &Act) -> Option<Reading> {
        match *act {
            Act::Take { after, cost } => {
                self.now += after;
                Some(self.take(cost))
            }
            Act::Refund { after, of } => {
                self.now += after;
                self.refund(of)
            }
        }
    }

    pub(crate) fn take(&mut self, cost: u64) -> Reading {
        self.operations += 1;
        let (at, id) = (self.now, self.operations);
        let reading =
            self.apply(Operation::Charge { cost: Cost::new(cost).unwrap(), id: ChargeId(id) });
        if reading.admission == Admission::Now && cost > 0 {
            let position = reading.position;
            self.admitted.push(Admitted { at, cost, position, id, refunded: None });
        }
        reading
    }

    pub(crate) fn refund(&mut self, of: usize) -> Option<Reading> {
        let index = self.admitted.len().checked_sub(of + 1)?;
        let Admitted { cost, position, id, refunded: None, .. } = self.admitted[index] else {
            return None;
        };
        let (cost, id) = (Cost::new(cost).unwrap(), ChargeId(id));
        let reading = self.apply(Operation::Refund {
            cost,
            position,
            id,
            deduplication: Deduplication::Unneeded,
        });
        self.admitted[index].refunded = Some(reading.refunded);
        Some(reading)
    }

    pub(crate) fn peek(&self) -> Reading {
        self.peek_at(self.now)
    }

    pub(crate) fn peek_at(&self, at: u64) -> Reading {
        self.assess_at(at, 0)
    }

    pub(crate) fn assess_at(&self, at: u64, cost: u64) -> Reading {
        let cost = Cost::new(cost).unwrap();
        assess(self.cell.as_ref(), &self.limit, cost, Timestamp::from_millis(at))
    }

    fn apply(&mut self, operation: Operation) -> Reading {
        let (reading, cell) =
            decide(self.cell.take(), &self.limit, operation, Timestamp::from_millis(self.now));
        self.cell = cell;
        reading
    }
}
