//! The history checker: what any store told, under whatever faults, against the invariants.
//!
//! [`Recorded`] wraps a store and records what it is asked and tells, in real time; a [`Recorder`]
//! does so call by call, and a [`History`] can be made by hand of what was recorded elsewhere.
//! [`History::check`] then holds it against every [`Rule`]. Nothing is known of the store but what
//! it told its callers.
//!
//! # Exactness
//! For a fixed window without refunds the check is complete: it passes exactly if the answers are
//! those of some order of the calls that real time allows. The admitted charges of a window are
//! intervals `(used - cost, used]` that must be disjoint, in the order of real time, and together
//! all that is used, up to the costs of calls whose outcome nobody knows. Where units were given
//! back the sums are bounded by what must and what may have happened before each answer, which is
//! exact where calls do not overlap; likewise where calls over several homes hold units for a while,
//! and where units are reserved: a settlement gives back and takes what it says, and a reservation
//! that is neither settled nor extended leaves at its end, or stays, as the limit's terms say.
//! Of the other algorithms their quota is checked: over every span of blocks, times or buckets, at
//! their rate, or in flight.
//!
//! Of a [leased](tollgate_core::LimitMode::Leased) limit several nodes tell numbers that are some
//! moments old, and count as used what others have taken in advance: admitted is never more than the
//! quota, and used never more than what was charged and what nodes may have. Of one node all is exact.
//!
//! What the world is to blame for is no violation: a [`Loss`] of state ends every window early, an
//! [`Allowance`] widens the rules by the bound of a mode, and what a caller with a lagging clock
//! is told of a window that another caller's clock had ended counts as uncertain. The clocks of one
//! history disagree by less than the limits' `skew_max`.
//!
//! Source: the intervals are Wing and Gong, "Testing and verifying concurrent objects" (1993), for
//! a counter whose answers say where in the order they stand, which makes the search a sort.

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
    /// Holds the history against every rule, widened by `allowance`.
    #[must_use]
    pub fn check(&self, allowance: Allowance) -> Report {
        rules::check(self, allowance)
    }
}
