//! Simulated callers that reserve, extend, settle and crash, for recording the answers of a store.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, ChargePosition, Cost, Limit, LimitError, Millis,
    OnExpiry, Operation, ReservationTerms, Store, Subject, Timestamp, Value,
};

use crate::plain_hash::PlainHash;
use crate::random::Random;

/// The largest number of units that one call charges or reserves.
const LARGEST: u64 = 4;
/// The longest requested reservation, in milliseconds. Some reservations outlive their window.
const LONGEST_HOLD: u64 = 150;
/// The longest time between two calls of one caller, in milliseconds.
const LONGEST_STEP: u64 = 10;

/// Simulated callers. Each call is on one limit. All callers share a clock and a few subjects.
///
/// A caller has a few open reservations. One reservation in five is abandoned and expires, as if a
/// node had crashed between reserving and settling.
#[derive(Debug)]
pub struct ReservingWorkload {
    /// The seed of the callers' random behavior. The order in which calls of different callers run
    /// does not depend on the seed.
    pub seed: u64,
    /// The limits. Each call is on one of these limits.
    pub limits: Vec<Limit>,
    /// The number of subjects.
    pub subjects: u64,
    /// The number of calls of each caller.
    pub calls: u64,
    clock: AtomicU64,
}

impl ReservingWorkload {
    /// Creates callers of `limits`. The clock starts at a time at which many windows start.
    #[must_use]
    pub const fn new(seed: u64, limits: Vec<Limit>) -> Self {
        let clock = AtomicU64::new(1_700_000_000_000);
        Self { seed, limits, subjects: 2, calls: 250, clock }
    }

    /// Returns limits of every algorithm that are small enough to refuse often. Some of the limits
    /// release the units of expired reservations, and the other limits keep these units charged.
    /// Some of the limits allow a settlement to overdraw, and the other limits do not.
    #[must_use]
    pub fn limits_of_each_kind() -> Vec<Limit> {
        limits_of_each_kind().expect("the numbers fit")
    }

    /// Executes all calls of the caller with the number `caller`, one after the other. Ignores
    /// errors.
    pub async fn call<S: Store>(&self, store: &S, caller: u64) {
        let mut random = Random::new(self.seed ^ caller.wrapping_mul(0x9e37_79b9));
        let mut open = Vec::new();
        for number in 0..self.calls {
            let step = if random.chance(35) { random.within(0..=LONGEST_STEP) } else { 0 };
            let now = Timestamp::from_millis(self.clock.fetch_add(step, Ordering::SeqCst));
            let id = ChargeId(u128::from(caller) << 64 | u128::from(number));
            match random.within(0..=99) {
                0..=29 => self.charge(store, now, id, &mut random).await,
                30..=59 => open.extend(self.reserve(store, now, id, &mut random).await),
                _ if open.is_empty() => self.charge(store, now, id, &mut random).await,
                60..=69 => {
                    let index = random.within(0..=open.len() as u64 - 1) as usize;
                    let Reserved { id, position, .. } = open[index];
                    let until = now.after(Millis::new(random.within(1..=LONGEST_HOLD)));
                    self.operation(
                        store,
                        now,
                        &open[index],
                        Operation::Extend { id, position, until },
                    )
                    .await;
                }
                drawn => {
                    let index = random.within(0..=open.len() as u64 - 1) as usize;
                    let Reserved { id, position, .. } = open[index];
                    let cost = Cost::up_to(random.within(0..=LARGEST + 2));
                    if drawn < 92 {
                        self.operation(
                            store,
                            now,
                            &open[index],
                            Operation::Settle { id, position, cost },
                        )
                        .await;
                    }
                    // In the other cases the reservation stays in the list, so it may be settled
                    // twice. The store answers a second settlement with the result that no
                    // reservation is open.
                    if random.chance(80) {
                        open.swap_remove(index);
                    }
                }
            }
        }
    }

    async fn charge<S: Store>(&self, store: &S, now: Timestamp, id: ChargeId, random: &mut Random) {
        let (limit, subject) = self.random_subject(random);
        let cost = Cost::up_to(random.within(0..=LARGEST));
        let charge = Charge {
            limit: &self.limits[limit],
            subject: &subject,
            operation: Operation::Charge { cost, id },
        };
        // The recorder contains the error.
        let _ = store.apply(now, &[charge]).await;
    }

    async fn reserve<S: Store>(
        &self,
        store: &S,
        now: Timestamp,
        id: ChargeId,
        random: &mut Random,
    ) -> Option<Reserved> {
        let (limit, subject) = self.random_subject(random);
        let cost = Cost::up_to(random.within(1..=LARGEST));
        let until = now.after(Millis::new(random.within(1..=LONGEST_HOLD)));
        let operation = Operation::Reserve { cost, id, until };
        let charge = Charge { limit: &self.limits[limit], subject: &subject, operation };
        let result = store.apply(now, &[charge]).await;
        match result.as_deref() {
            Ok([reading]) if reading.admission != Admission::Now => None,
            Ok([reading]) => Some(Reserved { id, limit, subject, position: reading.position }),
            // No answer to the reservation arrived. The caller settles the reservation
            // nevertheless.
            _ => Some(Reserved { id, limit, subject, position: ChargePosition::default() }),
        }
    }

    async fn operation<S: Store>(
        &self,
        store: &S,
        now: Timestamp,
        reserved: &Reserved,
        operation: Operation,
    ) {
        let (limit, subject) = (&self.limits[reserved.limit], &reserved.subject);
        let _ = store.apply(now, &[Charge { limit, subject, operation }]).await;
    }

    fn random_subject(&self, random: &mut Random) -> (usize, Subject) {
        let limit = random.within(0..=self.limits.len() as u64 - 1) as usize;
        let number = random.within(0..=self.subjects - 1);
        (limit, Subject::new([("number", Value::Clear(&number.to_be_bytes()))], &PlainHash))
    }
}

#[derive(Debug)]
struct Reserved {
    id: ChargeId,
    limit: usize,
    subject: Subject,
    position: ChargePosition,
}

fn limits_of_each_kind() -> Result<Vec<Limit>, LimitError> {
    let (quota, window) = (20, Millis::new(200));
    let fixed = |anchor| FixedWindow::new(quota, window, anchor).map(Algorithm::FixedWindow);
    let terms =
        ReservationTerms { max: Millis::new(120), at_most: 12, ..ReservationTerms::default() };
    let overdrawn = ReservationTerms { overdraft: 5, ..terms };
    let charged = ReservationTerms { on_expiry: OnExpiry::Charge, ..terms };
    let sliding = SlidingWindow::new(quota, window, Millis::new(20))?;
    let bucket = TokenBucket::new(quota, window, 10)?;
    let held = [
        ("released", fixed(Anchor::FirstRequest)?, terms),
        ("overdrawn", fixed(Anchor::FirstRequest)?, overdrawn),
        ("charged", fixed(Anchor::Calendar)?, charged),
        ("blocks", Algorithm::SlidingWindow(sliding), terms),
        ("two", Algorithm::TwoBucket(TwoBucket::new(quota, window)?), terms),
        ("log", Algorithm::SlidingLog(SlidingLog::new(quota, window)?), charged),
        ("bucket", Algorithm::TokenBucket(bucket), terms),
    ];
    // A permit has its own expiry.
    let leases = Algorithm::Concurrency(Concurrency::new(quota, window)?);
    let held = held
        .into_iter()
        .map(|(name, step, terms)| Limit::new(name, step)?.with_reservation_terms(terms));
    held.chain([Limit::new("leases", leases)]).collect()
}
