//! The history checker, which compares the answers of a store under faults with the invariants.
//!
//! [`Recorded`] wraps a store and records its calls and answers in real time. A [`Recorder`]
//! records single calls, and a test can create a [`History`] by hand from other records.
//! [`History::check`] compares the history with every [`Rule`], and uses only the answers that the
//! callers received.
//!
//! # Exactness
//! For a fixed window without refunds, the check is complete: a history passes if and only if some
//! order of the calls that real time allows produces these answers. The admitted charges of a
//! window are intervals `(used - cost, used]`. These intervals must be disjoint, in the order of
//! real time, and cover all used units except the costs of calls with an unknown outcome. If units
//! were refunded, the check compares the used units in each answer with two sums: of the events
//! that must have happened before the answer, and of the events that may have happened. The sums
//! are exact for calls that do not overlap. The same sums apply to calls on several servers, which
//! charge units temporarily, and to reservations. A settlement refunds and charges the units that
//! it reports. A reservation that is neither settled nor extended is released at its end, or stays
//! charged, as the limit's terms define. For the other algorithms, the check covers only the quota:
//! over every span of blocks, times or buckets, by the refill rate, or for the permits in flight.
//!
//! For a [leased](tollgate_core::LimitMode::Leased) limit, nodes report numbers that are slightly
//! old, and count units that other nodes have leased as used. The check verifies that the admitted
//! units never exceed the quota, and that the used units never exceed the charged units plus the
//! units that nodes may have leased. If only one node uses the store, all numbers are exact.
//!
//! Effects of the environment are not violations. A [`Loss`] of state ends every window early, and
//! an [`Allowance`] widens the rules by the bound of a mode of operation. An answer to a caller
//! with a slow clock counts as uncertain if a faster clock of another caller had already ended the
//! window. The clocks of one history must differ by less than the limits' `skew_max`.
//!
//! Source: the method is from Wing and Gong, "Testing and verifying concurrent objects" (1993),
//! applied to a counter. An answer of a counter shows its position in the order of calls, so
//! sorting replaces the search for an order.

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
