//! Simulated callers that make random charges, for recording the answers of a store.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, LimitError,
    Millis, Operation, Refusals, Store, Subject, Timestamp, Value,
};

use crate::plain_hash::PlainHash;
use crate::random::Random;

/// The largest cost of a charge.
pub const LARGEST_COST: u64 = 3;
/// The longest time between two calls of one caller, in milliseconds. All calls of eight callers
/// together advance the clock by less than the allowed clock skew. A delayed caller therefore never
/// sends a time that the store rejects as impossible.
const LONGEST_STEP: u64 = 10;

/// Whether callers refund their charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refunds {
    /// Callers never refund. In such histories, the rules of fixed windows find every violation.
    Never,
    /// Callers refund often, and sometimes refund the same charge twice.
    Often,
}

/// The subjects that a call charges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subjects {
    /// All charges of a call are for one subject.
    #[default]
    One,
    /// Each charge of a call has a random subject, so most calls have several subjects.
    Several,
}

/// Simulated callers that share a clock and charge a few limits and subjects.
#[derive(Debug)]
pub struct Workload {
    /// The seed of the callers' random behavior. The order in which calls of different callers run
    /// does not depend on the seed.
    pub seed: u64,
    /// The limits. A call may charge several of these limits.
    pub limits: Vec<Limit>,
    /// The number of subjects.
    pub subjects: u64,
    /// The number of calls of each caller.
    pub calls: u64,
    /// Whether the callers refund their charges.
    pub refunds: Refunds,
    /// The subjects that a call charges.
    pub of_a_call: Subjects,
    clock: AtomicU64,
}

impl Workload {
    /// Creates callers of `limits`. The clock starts at a time at which many windows start.
    #[must_use]
    pub const fn new(seed: u64, limits: Vec<Limit>, refunds: Refunds) -> Self {
        let clock = AtomicU64::new(1_700_000_000_000);
        let of_a_call = Subjects::One;
        Self { seed, limits, subjects: 2, calls: 400, refunds, of_a_call, clock }
    }

    /// Sets the time at which the callers' clock starts.
    #[must_use]
    pub fn starting_at(mut self, time: Timestamp) -> Self {
        self.clock = AtomicU64::new(time.as_millis());
        self
    }

    /// Returns limits of every algorithm that are small enough to refuse often.
    #[must_use]
    pub fn limits_of_each_kind() -> Vec<Limit> {
        limits_of_each_kind().expect("the numbers fit")
    }

    /// Executes all calls of the caller with the number `caller`, one after the other. Ignores
    /// errors.
    pub async fn call<S: Store>(&self, store: &S, caller: u64) {
        let mut random = Random::new(self.seed ^ caller.wrapping_mul(0x9e37_79b9));
        let mut receipts = Vec::new();
        for number in 0..self.calls {
            let step = if random.chance(20) { random.within(0..=LONGEST_STEP) } else { 0 };
            let now = Timestamp::from_millis(self.clock.fetch_add(step, Ordering::SeqCst));
            let is_refund = self.refunds == Refunds::Often && random.chance(30);
            if is_refund && !receipts.is_empty() {
                let index = random.within(0..=receipts.len() as u64 - 1) as usize;
                self.refund_units(store, now, &receipts[index]).await;
                if random.chance(70) {
                    receipts.swap_remove(index);
                }
                continue;
            }
            let id = ChargeId(u128::from(caller) << 64 | u128::from(number));
            receipts.extend(self.charge(store, now, id, &mut random).await);
        }
    }

    async fn charge<S: Store>(
        &self,
        store: &S,
        now: Timestamp,
        id: ChargeId,
        random: &mut Random,
    ) -> Option<Receipt> {
        let mut subject = random.within(0..=self.subjects - 1);
        let (first, count) = (random.bits() as usize, 1 + random.bits() as usize % 3);
        let count = count.min(self.limits.len());
        let indexes = (0..count).map(|offset| first.wrapping_add(offset) % self.limits.len());
        let mut charged: Vec<_> = indexes
            .map(|limit| {
                let cost = Cost::new(random.within(0..=LARGEST_COST)).unwrap_or(Cost::ONE);
                if self.of_a_call == Subjects::Several {
                    subject = random.within(0..=self.subjects - 1);
                }
                Charged {
                    limit,
                    subject: numbered(subject),
                    cost,
                    position: ChargePosition::default(),
                }
            })
            .collect();
        let operation = |charged: &Charged| Operation::Charge { cost: charged.cost, id };
        let charges = self.charges(&charged, operation);
        let readings = store.apply(now, &charges).await.ok().filter(|readings| {
            readings.len() == charges.len()
                && readings.iter().all(|readings| readings.admission == Admission::Now)
        })?;
        for (charged, reading) in charged.iter_mut().zip(readings.iter()) {
            charged.position = reading.position;
        }
        charged.retain(|charged| charged.cost != Cost::PEEK);
        (!charged.is_empty()).then_some(Receipt { id, charged })
    }

    async fn refund_units<S: Store>(&self, store: &S, now: Timestamp, receipt: &Receipt) {
        let Receipt { id, charged } = receipt;
        let operation = |charged: &Charged| {
            let (cost, position, deduplication) =
                (charged.cost, charged.position, Deduplication::ById);
            Operation::Refund { cost, position, id: *id, deduplication }
        };
        // The recorder contains the error.
        let _ = store.apply(now, &self.charges(charged, operation)).await;
    }

    fn charges<'a>(
        &'a self,
        charged: &'a [Charged],
        operation: impl Fn(&Charged) -> Operation,
    ) -> Vec<Charge<'a>> {
        let charge = |charged: &'a Charged| {
            let limit = &self.limits[charged.limit];
            Charge { limit, subject: &charged.subject, operation: operation(charged) }
        };
        charged.iter().map(charge).collect()
    }
}

struct Receipt {
    id: ChargeId,
    charged: Vec<Charged>,
}

struct Charged {
    limit: usize,
    subject: Subject,
    cost: Cost,
    position: ChargePosition,
}

fn limits_of_each_kind() -> Result<Vec<Limit>, LimitError> {
    let (quota, window) = (20, Millis::new(200));
    let fixed = |anchor| FixedWindow::new(quota, window, anchor).map(Algorithm::FixedWindow);
    let bucket = TokenBucket::new(quota, window, 10)?;
    let sliding = SlidingWindow::new(quota, window, Millis::new(20))?;
    let counted = Limit::new("counted", fixed(Anchor::FirstRequest)?)?;
    Ok(vec![
        Limit::new("first", fixed(Anchor::FirstRequest)?)?,
        Limit::new("calendar", fixed(Anchor::Calendar)?)?,
        counted.with_refusals(Refusals::Counted)?,
        Limit::new("blocks", Algorithm::SlidingWindow(sliding))?,
        Limit::new("two", Algorithm::TwoBucket(TwoBucket::new(quota, window)?))?,
        Limit::new("log", Algorithm::SlidingLog(SlidingLog::new(quota, window)?))?,
        Limit::new("bucket", Algorithm::TokenBucket(bucket))?,
        Limit::new("leases", Algorithm::Concurrency(Concurrency::new(quota, window)?))?,
    ])
}

fn numbered(number: u64) -> Subject {
    Subject::new([("number", Value::Clear(&number.to_be_bytes()))], &PlainHash)
}
