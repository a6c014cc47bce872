//! The history checker: compares the answers of a store under faults with the invariants.
//!
//! [`Recorded`] wraps a store and records its calls and answers in real time. A [`Recorder`] does
//! this for single calls, and a [`History`] can be created by hand from other records.
//! [`History::check`] then compares the history with every [`Rule`]. It uses only the answers that
//! the callers received.
//!
//! # Exactness
//! For a fixed window without refunds, the check is complete: it passes exactly if the answers are
//! those of some order of the calls that real time allows. The admitted charges of a window are
//! intervals `(used - cost, used]`. They must be disjoint, in the order of real time, and cover all
//! used units, up to the costs of calls with an unknown outcome. If units were refunded, the sums
//! are bounded by the events that must and that may have happened before each answer, which is
//! exact for calls that do not overlap. The same applies to calls on several servers, which charge
//! units temporarily, and to reservations: a settlement refunds and charges the units that it
//! reports, and a reservation that is neither settled nor extended is released at its end, or stays
//! charged, as the limit's terms say. For the other algorithms, the quota is checked: over every
//! span of blocks, times or buckets, by their rate, or in flight.
//!
//! For a [leased](tollgate_core::LimitMode::Leased) limit, several nodes report numbers that are
//! slightly old, and include units that others have leased as used: the admitted units never exceed
//! the quota, and the used units never exceed the charges and the units that nodes may have. For a
//! single node all numbers are exact.
//!
//! Effects of the environment are not violations: a [`Loss`] of state ends every window early, an
//! [`Allowance`] widens the rules by the bound of a mode, and answers about a window that another
//! caller's faster clock had ended count as uncertain for a caller with a slower clock. The clocks
//! of one history differ by less than the limits' `skew_max`.
//!
//! Source: the intervals are from Wing and Gong, "Testing and verifying concurrent objects" (1993),
//! for a counter whose answers contain their position in the order, which reduces the search to a
//! sort.

mod account;
mod allowance;
mod call;
mod clocks;
mod event;
mod holds;
mod recorded;
mod recorder;
mod report;
mod reserving_workload;
mod rules;
mod window;
mod workload;

pub use allowance::Allowance;
pub use call::{Call, History, Loss, Moment, NEVER, Outcome, RecordedCharge};
pub use recorded::Recorded;
pub use recorder::{DEFAULT_CALLS, Issued, LossGuard, Recorder};
pub use report::{MAX_VIOLATIONS, Report, Rule, Violation};
pub use reserving_workload::ReservingWorkload;
pub use workload::{LARGEST_COST, Refunds, Subjects, Workload};

impl History {
    /// Checks the history against every rule, widened by `allowance`.
    #[must_use]
    pub fn check(&self, allowance: Allowance) -> Report {
        rules::check(self, allowance)
    }
}
