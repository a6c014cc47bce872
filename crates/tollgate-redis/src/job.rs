//! A job: one store call, with the parameters that the step needs.

mod cells;

use tollgate_core::{
    Algorithm, Charge, ChargeId, ChargePosition, Deduplication, Limit, MAX_EXACT, Millis, OnExpiry,
    Operation, Timestamp, algo::Anchor, algo::Schedule, decide::refundable_until, limit::Refusals,
};

use crate::decision_time::JobTime;
use crate::key::{Keys, refund_name};
use crate::offset::{ClockAt, ClockOffset};

/// One store call: its charges and its time.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) now: Timestamp,
    /// The largest permitted difference of `now` from the shard's clock. See
    /// [`JobTime::tolerance`].
    pub(crate) tolerance: Option<Millis>,
    pub(crate) charges: Box<[JobCharge]>,
}

/// One charge of a job, or another operation on one limit and subject.
#[derive(Clone, Debug)]
pub(crate) struct JobCharge {
    /// The parameters of the limit. If the limit has a schedule, [`rule_at`](Self::rule_at) adds
    /// the window.
    pub(crate) rule: Rule,
    /// The schedule of the limit's windows, if the windows have different lengths.
    pub(crate) schedule: Option<Schedule>,
    pub(crate) key: Box<[u8]>,
    pub(crate) op: Op,
}

/// The parameters of a limit, as the step reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) kind: u8,
    pub(crate) counts_refused: u8,
    pub(crate) quota: u64,
    pub(crate) window: u64,
    /// A parameter that depends on the algorithm. For a fixed window, the code of its anchor or the
    /// end of its scheduled window; for a sliding window, the precision; for a token bucket, the
    /// burst.
    pub(crate) extra: u64,
    pub(crate) skew_max: u64,
}

/// The operation of a job on one cell. `Cell` reads the stored cell. `Join` joins the stored cell
/// with the cell that the bytes of the variant encode.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Charge {
        cost: u64,
    },
    TakeLease {
        cost: u64,
        id: ChargeId,
    },
    Peek {
        cost: u64,
    },
    Refund {
        cost: u64,
        position: u64,
    },
    RefundGuarded {
        cost: u64,
        position: u64,
        guard: Box<[u8]>,
        until: Timestamp,
    },
    RefundLease {
        id: ChargeId,
    },
    Renew {
        id: ChargeId,
    },
    Reset,
    Reserve {
        cost: u64,
        id: ChargeId,
        until: Timestamp,
        at_most: u64,
        on_expiry: OnExpiry,
    },
    Extend {
        id: ChargeId,
        until: Timestamp,
    },
    /// Replaces a reservation by the actual `cost`. The settlement may raise the used units to at
    /// most `most`.
    Settle {
        cost: u64,
        id: ChargeId,
        most: u64,
    },
    Cell,
    Join {
        cell: Box<[u8]>,
    },
}

impl Job {
    /// Creates the job that executes `charges` at `time`. `keys` determines the names of the keys.
    pub(crate) fn new(keys: &Keys, time: impl Into<JobTime>, charges: &[Charge<'_>]) -> Self {
        let JobTime { now, tolerance } = time.into();
        let operation = |charge: &Charge<'_>| {
            let key = keys.name(charge.limit, charge.subject);
            let op = Op::new(charge, &key, now);
            JobCharge::new(charge.limit, key, op)
        };
        Self { now, tolerance, charges: charges.iter().map(operation).collect() }
    }

    /// Returns the same job with a final time. A job for a replica needs a final time, because the
    /// replica's clock must not replace the time of the job.
    pub(crate) fn timed(&self) -> Self {
        Self { tolerance: None, ..self.clone() }
    }

    pub(crate) const fn set_time(&mut self, time: JobTime) {
        self.now = time.now;
        self.tolerance = time.tolerance;
    }

    /// Returns the `skew_max` of each limit of the job: how far in the future the times in stored
    /// state may be.
    pub(crate) fn skews(&self) -> impl Iterator<Item = Millis> {
        self.charges.iter().map(|operation| Millis::new(operation.rule.skew_max))
    }

    /// Replaces the job's time by the shard's time if the two times differ by more than the job's
    /// tolerance.
    pub(crate) fn retime(&mut self, shard: ClockAt) {
        let Some(tolerance) = self.tolerance else { return };
        let offset = shard.ahead_of(self.now);
        if !offset.is_within(tolerance) {
            self.now = offset.shift(self.now);
            self.charges.iter_mut().for_each(|operation| operation.op.shift(offset));
        }
    }

    /// Returns whether the job writes if its charges are admitted. Other operations can succeed
    /// without a write, such as a refund in a window that is over.
    pub(crate) fn takes_units(&self) -> bool {
        self.charges.iter().any(|operation| match operation.op {
            Op::Charge { cost } | Op::TakeLease { cost, .. } | Op::Reserve { cost, .. } => cost > 0,
            _ => false,
        })
    }

    /// Returns whether the job only reads: it changes nothing, whatever state the server has.
    pub(crate) fn is_read_only(&self) -> bool {
        self.charges.iter().all(|operation| match operation.op {
            Op::Charge { cost } | Op::TakeLease { cost, .. } | Op::Reserve { cost, .. } => {
                cost == 0
            }
            Op::Peek { .. } | Op::Cell => true,
            Op::Refund { .. } | Op::RefundGuarded { .. } => false,
            Op::Extend { .. } | Op::Settle { .. } => false,
            Op::RefundLease { .. } | Op::Renew { .. } | Op::Reset | Op::Join { .. } => false,
        })
    }
}

impl JobCharge {
    fn new(limit: &Limit, key: Box<[u8]>, op: Op) -> Self {
        let schedule = match limit.algorithm() {
            Algorithm::FixedWindow(window) => match window.anchor() {
                Anchor::Scheduled(schedule) => Some(schedule),
                Anchor::FirstRequest | Anchor::Calendar => None,
            },
            _ => None,
        };
        Self { rule: Rule::new(limit), schedule, key, op }
    }

    /// Returns the parameters for a decision at `now`, the job's time when the job is sent. This
    /// time may differ from the time at which the job was created, because the shard's time may
    /// have replaced the job's time.
    pub(crate) fn rule_at(&self, now: Timestamp) -> Rule {
        let Some(schedule) = self.schedule else { return self.rule };
        let end = schedule.window_at(now).end.as_millis();
        Rule { extra: end.max(Rule::FIRST_SCHEDULED_END), ..self.rule }
    }
}

impl Rule {
    /// The smallest value of `extra` that the step reads as the end of a scheduled window. The
    /// smaller values 0 and 1 stand for windows that open with the first request and for calendar
    /// windows.
    const FIRST_SCHEDULED_END: u64 = 2;
    /// The code of the algorithm `fixed_window`.
    pub(crate) const FIXED_WINDOW: u8 = 1;

    fn new(limit: &Limit) -> Self {
        let (kind, quota, window, extra) = match limit.algorithm() {
            Algorithm::FixedWindow(it) => {
                let anchor = match it.anchor() {
                    Anchor::FirstRequest => 0,
                    Anchor::Calendar => 1,
                    Anchor::Scheduled(_) => Self::FIRST_SCHEDULED_END,
                };
                (Self::FIXED_WINDOW, it.quota(), it.window(), anchor)
            }
            Algorithm::SlidingWindow(it) => (2, it.quota(), it.window(), it.precision().get()),
            Algorithm::TwoBucket(it) => (3, it.quota(), it.window(), 0),
            Algorithm::SlidingLog(it) => (4, it.quota(), it.window(), 0),
            Algorithm::TokenBucket(it) => (5, it.quota(), it.window(), it.burst()),
            Algorithm::Concurrency(it) => (6, it.quota(), it.permit_ttl(), 0),
        };
        Self {
            kind,
            counts_refused: u8::from(limit.refusals() == Refusals::Counted),
            quota,
            window: window.get(),
            extra,
            skew_max: limit.skew_tolerance().get(),
        }
    }
}

impl Op {
    fn new(charge: &Charge<'_>, key: &[u8], now: Timestamp) -> Self {
        let has_leases = matches!(charge.limit.algorithm(), Algorithm::Concurrency(_));
        match charge.operation {
            Operation::Charge { cost, id } | Operation::Reserve { cost, id, .. } if has_leases => {
                Self::TakeLease { cost: cost.get(), id }
            }
            Operation::Charge { cost, .. } => Self::Charge { cost: cost.get() },
            Operation::Peek { cost } => Self::Peek { cost: cost.get() },
            Operation::Refund { id, .. } if has_leases => Self::RefundLease { id },
            Operation::Refund { cost, position, id, deduplication } => {
                // The step never creates a charge position above the largest exact integer, so all
                // larger positions can be treated alike.
                let (cost, stored_position) = (cost.get(), position.0.min(MAX_EXACT + 1));
                match deduplication {
                    Deduplication::Unneeded => Self::Refund { cost, position: stored_position },
                    Deduplication::ById => {
                        let (guard, until) =
                            (refund_name(key, id), remembered_until(charge.limit, position, now));
                        Self::RefundGuarded { cost, position: stored_position, guard, until }
                    }
                }
            }
            Operation::Extend { id, .. } if has_leases => Self::Renew { id },
            Operation::Renew { id } => Self::Renew { id },
            Operation::Reset => Self::Reset,
            Operation::Reserve { .. } | Operation::Extend { .. } | Operation::Settle { .. } => {
                Self::of_reservation(charge, now)
            }
        }
    }
}

impl Op {
    /// Shifts the times in this operation that were computed from the job's time.
    fn shift(&mut self, offset: ClockOffset) {
        match self {
            Self::Reserve { until, .. } | Self::Extend { until, .. } => {
                *until = offset.shift(*until);
            }
            // The time `until` may have been computed from stored state and not from the job's
            // time. In the worst case, the refund is remembered for longer than necessary.
            Self::RefundGuarded { until, .. } => *until = offset.shift(*until).max(*until),
            _ => {}
        }
    }

    fn of_reservation(charge: &Charge<'_>, now: Timestamp) -> Self {
        let hold = charge.limit.reservation_terms();
        match charge.operation {
            Operation::Reserve { cost, id, until } => {
                let (at_most, on_expiry) = (hold.at_most, hold.on_expiry);
                Self::Reserve {
                    cost: cost.get(),
                    id,
                    until: hold.end(until, now),
                    at_most,
                    on_expiry,
                }
            }
            Operation::Extend { id, until, .. } => Self::Extend { id, until: hold.end(until, now) },
            Operation::Settle { id, cost, .. } => {
                let most = charge.limit.capacity().saturating_add(hold.overdraft).min(MAX_EXACT);
                Self::Settle { cost: cost.get(), id, most }
            }
            _ => Self::Peek { cost: charge.operation.cost().get() },
        }
    }
}

/// Returns the time until which the server remembers a refund, to ignore repetitions of it. This is
/// the end of the time in which the charge at `position` can be refunded, but at most two windows
/// and the tolerated clock difference after `now`, even if a receipt contains a later position.
fn remembered_until(limit: &Limit, position: ChargePosition, now: Timestamp) -> Timestamp {
    let window: Millis = limit.window();
    let longest = now.after(window).after(window).after(limit.skew_tolerance());
    refundable_until(limit, position).min(longest)
}
