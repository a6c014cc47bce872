//! Runs a trace on a store and on the model for comparison.

use std::time::{Duration, Instant};

use tollgate_core::decide::refundable_until;
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Reading, Store,
    StoredState, Subject, Timestamp, Value,
};

use super::receipts::{Receipt, Receipts};
use super::{Call, Difference, LimitCharge, Op, Trace};
use crate::dyn_store::{BoxFuture, DynStore};
use crate::model::Model;
use crate::plain_hash::PlainHash;

/// The most times that one trace is run if the machine stalls during the runs. Each run uses other
/// subjects.
const TRIES: u32 = 5;

/// Runs `trace` on `store` and on the model, and compares the answers. The names of the subjects
/// start with `prefix`, so runs on a shared store do not affect each other.
///
/// If the end of some state has passed at the latest time of the trace, later calls are not sent
/// with an earlier time than that end, because it is uncertain whether the store has deleted the
/// state. On a real server, it is also uncertain if the machine stalled and real time advanced by
/// `skew_max` during the run. If answers of such a run differ from the model's answers, the trace
/// is run again, at most five times in all.
///
/// # Errors
/// [`Difference`] with the first answer that differs from the model's answer.
pub async fn run_trace<S: Store>(
    store: &S,
    trace: &Trace,
    prefix: &str,
) -> Result<(), Box<Difference>> {
    let begun = Instant::now();
    run_trace_by(store, trace, prefix, || begun.elapsed()).await
}

/// Runs a trace like [`run_trace`]. `elapsed` returns the elapsed real time.
///
/// # Errors
/// As for [`run_trace`].
pub async fn run_trace_by<S: Store>(
    store: &S,
    trace: &Trace,
    prefix: &str,
    elapsed: impl Fn() -> Duration,
) -> Result<(), Box<Difference>> {
    // A server keeps a key for this time after the state in the key has ended.
    let skew_max = trace.limits.iter().map(|limit| limit.skew_max().get()).min();
    let kept_for = Duration::from_millis(skew_max.unwrap_or_default());
    let mut tries = 1;
    loop {
        let begun = elapsed();
        let outcome = run_once(DynStore::new(store), trace, &format!("{prefix}{tries}")).await;
        let stalled = elapsed().saturating_sub(begun) >= kept_for;
        if outcome.is_ok() || !stalled || tries == TRIES {
            return outcome;
        }
        tries += 1;
    }
}

fn run_once<'f>(
    store: DynStore<'f>,
    trace: &'f Trace,
    prefix: &'f str,
) -> BoxFuture<'f, Result<(), Box<Difference>>> {
    Box::pin(async move {
        let mut run = Run {
            trace,
            subjects: [0, 1].map(|number| subject(prefix, trace.seed, number)),
            model: Model::new(),
            latest: Timestamp::EPOCH,
            receipts: Receipts::default(),
        };
        for (index, op) in trace.ops.iter().enumerate() {
            run.step(store, index, op).await?;
        }
        Ok(())
    })
}

fn subject(prefix: &str, seed: u64, number: u8) -> Subject {
    let (seed, number) = (seed.to_string(), number.to_string());
    let pairs = [
        ("run", Value::Clear(prefix.as_bytes())),
        ("seed", Value::Clear(seed.as_bytes())),
        ("subject", Value::Clear(number.as_bytes())),
    ];
    Subject::new(pairs, &PlainHash)
}

struct Run<'t> {
    trace: &'t Trace,
    subjects: [Subject; 2],
    model: Model,
    latest: Timestamp,
    receipts: Receipts,
}

impl Run<'_> {
    async fn step(
        &mut self,
        store: DynStore<'_>,
        index: usize,
        op: &Op,
    ) -> Result<(), Box<Difference>> {
        let id = ChargeId(u128::from(self.trace.seed) << 32 | index as u128);
        let operations = self.operations(op, id);
        if operations.is_empty() {
            return Ok(());
        }
        let now = self.settled_moment(op.now, &operations);
        self.latest = self.latest.max(now);
        let subjects = self.subjects.clone();
        let charges: Vec<_> = operations
            .iter()
            .map(|(charge, operation)| Charge {
                limit: &self.trace.limits[charge.limit],
                subject: &subjects[usize::from(charge.subject)],
                operation: *operation,
            })
            .collect();
        let expected = self.model.apply(now, &charges);
        let answered = store.apply(now, &charges).await;
        let difference = |limit, expected, answered| {
            let (seed, call) = (self.trace.seed, op.call.clone());
            Box::new(Difference { seed, op: index, call, now, limit, expected, answered })
        };
        let answered = answered.map_err(|error| difference(None, None, Err(error)))?;
        for (index, charge) in charges.iter().enumerate() {
            let (expected, answered) = (expected[index], answered.get(index).copied());
            if answered.is_none_or(|answered| !agree(charge, &expected, &answered)) {
                let limit = Some(charge.limit.clone());
                return Err(difference(limit, Some(expected), Ok(answered)));
            }
        }
        if matches!(op.call, Call::Charge(_) | Call::Reserve(..)) && expected.all_admitted() {
            let charges = operations.iter().zip(answered.iter());
            let charges =
                charges.map(|((charge, _), reading)| (*charge, reading.position)).collect();
            self.receipts.add(&op.call, Receipt { id, charges, refund: None });
        }
        Ok(())
    }

    fn operations(&mut self, op: &Op, id: ChargeId) -> Vec<(LimitCharge, Operation)> {
        let until = |millis: u64| op.now.after(Millis::new(millis));
        match &op.call {
            Call::Charge(charges) => charges
                .iter()
                .map(|charge| (*charge, Operation::Charge { cost: charge.cost, id }))
                .collect(),
            Call::Reserve(charges, millis) => {
                let until = until(*millis);
                let reserve = |charge: &LimitCharge| {
                    (*charge, Operation::Reserve { cost: charge.cost, id, until })
                };
                charges.iter().map(reserve).collect()
            }
            Call::Peek(charges) => charges
                .iter()
                .map(|charge| (*charge, Operation::Peek { cost: charge.cost }))
                .collect(),
            Call::Refund(back, deduplication) => self.receipts.refunds(*back, *deduplication),
            Call::Extend(back, millis) => self.receipts.extensions(*back, until(*millis)),
            Call::Settle(back, percent) => self.receipts.settlements(*back, *percent),
            Call::Renew(back) => self.receipts.renewals(*back),
            Call::Reset(charge) => {
                self.receipts.forget(*charge, &self.trace.limits);
                vec![(*charge, Operation::Reset)]
            }
        }
    }

    /// Returns the time for the next call: `now`, or the latest time of the trace. The latest time
    /// is used if a store may have deleted state by that time that would still count at `now`.
    fn settled_moment(&self, now: Timestamp, operations: &[(LimitCharge, Operation)]) -> Timestamp {
        let between = |expires_at: Timestamp| now < expires_at && expires_at <= self.latest;
        let may_be_forgotten = operations.iter().any(|(charge, operation)| {
            let limit = &self.trace.limits[charge.limit];
            let subject = &self.subjects[usize::from(charge.subject)];
            let refund_over = match operation {
                Operation::Refund { position, .. } => between(refundable_until(limit, *position)),
                _ => false,
            };
            refund_over || between(self.model.expires_at(limit.name(), subject))
        });
        if may_be_forgotten { self.latest.max(now) } else { now }
    }
}

/// Returns whether two readings are equal for a client. The field `found` is compared only for
/// discarded state, and `position` only for an admitted charge, because other values are not
/// reported to clients.
fn agree(charge: &Charge<'_>, expected: &Reading, answered: &Reading) -> bool {
    let admitted = charge.operation.as_charge().is_some_and(|(cost, _)| cost != Cost::PEEK)
        && expected.admission == Admission::Now
        && !is_concurrency(charge.limit);
    expected.admission == answered.admission
        && expected.fits_again == answered.fits_again
        && expected.used == answered.used
        && expected.full_reset_at == answered.full_reset_at
        && expected.refunded == answered.refunded
        && expected.added == answered.added
        && expected.reserved == answered.reserved
        && (expected.found == StoredState::Discarded) == (answered.found == StoredState::Discarded)
        && (!admitted || expected.position == answered.position)
}

const fn is_concurrency(limit: &Limit) -> bool {
    matches!(limit.algorithm(), Algorithm::Concurrency(_))
}
