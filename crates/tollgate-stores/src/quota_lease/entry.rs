//! The lease of one limit and subject, as a state machine without I/O: the caller passes the
//! store's answers and the time.

use std::sync::Arc;

use tokio::sync::watch;
use tollgate_core::decide::refundable_until;
use tollgate_core::{
    Admission, ChargePosition, Cost, Deduplication, LeaseSpan, Limit, Operation, Reading,
    StoreError, StoredState, Subject, Timestamp,
};

use super::config::{FAST_EXHAUSTION, FIRST_CHARGES, LeaseConfig};
use tollgate::receipt::new_charge_id;

/// The number of sweep periods for which a lease keeps units. The usage since the last sweep gives
/// the expected usage in these periods.
const HISTORY_SWEEPS: u64 = 4;

/// The number of sweeps without a charge after which an entry is removed.
const IDLE_SWEEPS: u8 = 8;

/// A copy of a limit and a subject, which a task can own even if the task outlives the charge.
#[derive(Debug)]
pub(super) struct LeaseSubject {
    pub(super) limit: Limit,
    pub(super) subject: Subject,
}

/// The result of an attempt to take a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseOutcome {
    /// The lease has units now.
    Acquired,
    /// No units were leased: each charge is sent to the store.
    Refused,
    /// The store did not answer.
    Failed(StoreError),
}

/// The number of store answers that an entry had received when a call was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyCount(u64);

/// A receiver for the result of an attempt to take a lease.
pub(super) type LeaseReceiver = watch::Receiver<Option<LeaseOutcome>>;

/// The units that a node has leased for one limit and subject, in one window or block.
///
/// The store has counted the `unused` units at `position`, and no other node uses these units. A
/// position identifies a window or block. Units are added only if the store counted them at the
/// same position: units charged for the lease, and refunds through this node of charges that this
/// node had made at the position (`own`).
pub(super) struct LeaseEntry {
    pub(super) account: Arc<LeaseSubject>,
    position: ChargePosition,
    span: LeaseSpan,
    unused: u64,
    /// The position of the last closed lease, and the number of units that are unused there. The
    /// store counts these units at that position until they are refunded. No units are added to the
    /// lease before that, so a lease that is closed later has none.
    former: (ChargePosition, u64),
    /// The usage in the store's last answer, including all unused units.
    used: u64,
    /// The number of store answers that this entry has received. If the number has changed since a
    /// call was sent, another answer arrived while the call was in flight.
    replies: ReplyCount,
    /// The usage at the current position when the entry was created, without the units that were
    /// admitted through this node (`own`).
    before: u64,
    /// The units that were admitted through this node at the current position and not refunded. A
    /// lease is taken only if this number is not zero, so a lease never opens a window that no
    /// charge would have opened.
    own: u64,
    /// The number of units of the next lease.
    size: u64,
    acquired_at: Option<Timestamp>,
    /// The number of units used since the last sweep.
    spent: u64,
    quiet: u8,
    pub(super) seen: Timestamp,
    pub(super) turn: Option<LeaseReceiver>,
}

impl LeaseEntry {
    /// Creates the entry after the store admitted a charge of `cost` at `now` with this reading.
    pub(super) fn of(
        account: LeaseSubject,
        reading: &Reading,
        cost: Cost,
        now: Timestamp,
    ) -> Option<Self> {
        let span = account.limit.lease_span(reading.position)?;
        Some(Self {
            account: Arc::new(account),
            position: reading.position,
            span,
            unused: 0,
            former: (reading.position, 0),
            used: reading.used,
            replies: ReplyCount::default(),
            before: reading.used.saturating_sub(cost.get()),
            own: cost.get(),
            size: cost.get().saturating_mul(FIRST_CHARGES),
            acquired_at: None,
            spent: cost.get(),
            quiet: 0,
            seen: now,
            turn: None,
        })
    }

    /// Returns whether the entry belongs to exactly this definition of the limit. Under another
    /// definition, the same position identifies another window or block.
    pub(super) fn is_of(&self, limit: &Limit) -> bool {
        self.account.limit.algorithm() == limit.algorithm()
    }

    /// Applies `operation` to the lease. Returns `None` if the operation must be sent to the store.
    pub(super) fn answer(
        &mut self,
        operation: Operation,
        now: Timestamp,
        config: &LeaseConfig,
    ) -> Option<Reading> {
        let is_live = self.span.includes(now) && self.own > 0;
        match operation {
            Operation::Charge { cost, .. } if is_live && self.covers(cost) => {
                self.unused -= cost.get();
                self.own = self.own.saturating_add(cost.get());
                self.spent = self.spent.saturating_add(cost.get());
                self.seen = self.seen.max(now);
                Some(self.reading())
            }
            // A peek with zero cost requests the store's status, so the peek is sent to the store.
            Operation::Peek { cost } if is_live && cost != Cost::PEEK && self.covers(cost) => {
                Some(self.reading())
            }
            Operation::Refund {
                cost, position, deduplication: Deduplication::Unneeded, ..
            } if is_live => self.restore_units(cost, position, config),
            _ => None,
        }
    }

    /// Returns whether the lease covers `cost` and, as far as this node knows, the remaining units
    /// of the limit are enough for two charges of this cost. Charges close to the limit are decided
    /// by the store, which has counted the whole usage.
    fn covers(&self, cost: Cost) -> bool {
        let counted_elsewhere = self.used.saturating_sub(self.unused);
        let left = self.account.limit.capacity().saturating_sub(counted_elsewhere);
        cost.needed() <= self.unused && cost.get().saturating_add(cost.needed()) <= left
    }

    /// Adds refunded units of this node's own charges to the lease. Returns the reading of the
    /// refund. Changes nothing and returns `None` in the following cases, in which the units must
    /// be refunded at the store:
    ///
    /// - The units were charged at another position.
    /// - The units are all units that this node admitted at the position.
    /// - The lease would exceed its maximum.
    /// - Other units have used up the limit.
    /// - Unused units of a closed lease are not refunded yet.
    fn restore_units(
        &mut self,
        cost: Cost,
        position: ChargePosition,
        config: &LeaseConfig,
    ) -> Option<Reading> {
        let units = cost.get();
        let unused = self.unused.saturating_add(units);
        let is_here = position == self.position && units > 0 && units < self.own;
        let at_most = config.max_unused_units(&self.account.limit);
        let counted_elsewhere = self.used.saturating_sub(unused);
        let is_full = unused > at_most || counted_elsewhere >= self.account.limit.capacity();
        if !is_here || is_full || self.has_former_units() {
            return None;
        }
        self.unused = unused;
        self.own -= units;
        Some(Reading { refunded: units, ..self.reading() })
    }

    /// Returns whether unused units of a closed lease are not refunded yet.
    const fn has_former_units(&self) -> bool {
        self.former.1 > 0
    }

    /// Returns the reading of a charge that fits, with the current status of the limit.
    fn reading(&self) -> Reading {
        Reading {
            admission: Admission::Now,
            fits_again: Admission::Now,
            used: self.used.saturating_sub(self.unused),
            full_reset_at: refundable_until(&self.account.limit, self.position),
            position: self.position,
            found: StoredState::Present,
            ..Reading::default()
        }
    }

    /// Undoes a local charge at `position` and returns the status without the charge. If the lease
    /// has moved to another position, changes nothing and returns `None`.
    pub(super) fn undo_charge(&mut self, cost: Cost, position: ChargePosition) -> Option<Reading> {
        if position != self.position {
            return None;
        }
        self.unused = self.unused.saturating_add(cost.get());
        self.own = self.own.saturating_sub(cost.get());
        self.spent = self.spent.saturating_sub(cost.get());
        Some(self.reading())
    }

    /// Returns the number of units that a lease must take at `now` to cover `cost`.
    ///
    /// Returns `None` if a lease would not be larger than `cost`, because few units remain, or if
    /// the current position is unknown.
    pub(super) fn wanted(
        &mut self,
        cost: Cost,
        now: Timestamp,
        config: &LeaseConfig,
    ) -> Option<u64> {
        if !self.span.includes(now) || self.own == 0 || self.has_former_units() {
            return None;
        }
        let at_most = config.max_unused_units(&self.account.limit);
        if self.acquired_at.take().is_some_and(|taken| now.since(taken) < FAST_EXHAUSTION) {
            self.size = self.size.saturating_mul(2).min(at_most);
        }
        let left = self.account.limit.capacity().saturating_sub(self.used);
        let lease_size = self.size.max(cost.get().saturating_mul(2)).min(config.part_of(left));
        (lease_size > cost.get())
            .then(|| lease_size.saturating_sub(self.unused))
            .filter(|units| *units > 0)
    }

    /// Returns the number of store answers received so far.
    pub(super) fn replies(&self) -> ReplyCount {
        self.replies
    }

    /// Updates the usage from the store's answer to a call. `sent_at` is the number of store
    /// answers that had arrived when the call was sent.
    ///
    /// Answers to concurrent calls arrive in any order, so the last answer may be out of date. In
    /// that case, the usage is at least the certainly [counted](Self::counted) units.
    fn observe_reply(&mut self, used: u64, sent_at: Option<ReplyCount>) {
        let is_last = sent_at == Some(self.replies);
        self.replies.0 = self.replies.0.wrapping_add(1);
        self.used = if is_last { used } else { used.max(self.counted()) };
    }

    /// Returns the units that the store has certainly counted: the units from before this entry,
    /// the units that were admitted through this node, and the unused units of the lease.
    const fn counted(&self) -> u64 {
        self.before.saturating_add(self.own).saturating_add(self.unused)
    }

    /// Processes the store's answer to the charge of `units` for the next lease. Returns the
    /// outcome of the attempt, and whether the store charged units that must be refunded, because
    /// the position is another one or unused units of a closed lease are not refunded yet.
    pub(super) fn finish(
        &mut self,
        units: u64,
        reading: &Reading,
        now: Timestamp,
        sent_at: ReplyCount,
    ) -> (LeaseOutcome, bool) {
        let is_here = reading.position == self.position;
        let is_charged = reading.admission == Admission::Now;
        if !is_here || reading.reserved > 0 {
            self.close();
        }
        let is_here = is_here && !self.has_former_units();
        if is_here && is_charged {
            self.unused = self.unused.saturating_add(units);
        }
        if is_here {
            self.observe_reply(reading.used, Some(sent_at));
        }
        if !is_here || !is_charged {
            return (LeaseOutcome::Refused, is_charged);
        }
        self.acquired_at = Some(now);
        self.seen = self.seen.max(now);
        (LeaseOutcome::Acquired, false)
    }

    /// Processes the store's answer to an operation that is not read-only. `admitted` is the cost
    /// that the store charged for the operation.
    pub(super) fn learn(
        &mut self,
        operation: Operation,
        reading: &Reading,
        admitted: Cost,
        now: Timestamp,
        sent_at: Option<ReplyCount>,
    ) {
        let is_older = reading.position.0 < self.position.0 && self.span.includes(now);
        if reading.found == StoredState::Discarded || reading.reserved > 0 {
            return self.close();
        }
        if is_older {
            return;
        }
        if reading.position != self.position {
            self.close();
            let span = self.account.limit.lease_span(reading.position);
            let Some(span) = span.filter(|_| admitted.get() > 0) else { return };
            (self.position, self.span, self.own) = (reading.position, span, 0);
            self.before = reading.used.saturating_sub(admitted.get());
        } else if reading.used <= self.before {
            // The store counted the charge before this entry was created, but the answer to the
            // charge arrived later.
            self.before = self.before.saturating_sub(admitted.get());
        }
        self.own = self.own.saturating_add(admitted.get());
        self.spent = self.spent.saturating_add(admitted.get());
        if let Operation::Refund { position, .. } | Operation::Settle { position, .. } = operation
            && position == self.position
        {
            self.own = self.own.saturating_sub(reading.refunded);
        }
        self.observe_reply(reading.used, sent_at);
        self.seen = self.seen.max(now);
    }

    /// Closes the lease because the current position is unknown. The unused units are not used any
    /// more. If their window has ended, the units are void. If only a block has ended, the units
    /// count for the rest of the window and are refunded.
    fn close(&mut self) {
        if self.unused > 0 {
            let before = if self.former.0 == self.position { self.former.1 } else { 0 };
            self.former = (self.position, before.saturating_add(self.unused));
        }
        (self.unused, self.own) = (0, 0);
        self.acquired_at = None;
    }

    /// Returns `reading`, the store's reading of a peek, without this node's unused units. Returns
    /// `None` if the status without these units is not known.
    pub(super) fn corrected(
        &self,
        reading: &Reading,
        sent_at: Option<ReplyCount>,
    ) -> Option<Reading> {
        if self.has_former_units() {
            return None;
        }
        if self.unused == 0 {
            return Some(*reading);
        }
        let is_here = reading.position == self.position
            && reading.admission == Admission::Now
            && self.own > 0;
        let is_known = is_here && (sent_at == Some(self.replies) || reading.used >= self.counted());
        is_known.then(|| Reading { used: reading.used.saturating_sub(self.unused), ..*reading })
    }

    /// Returns a refund of the unused units of the last closed lease, and a refund of the unused
    /// units of the current lease. Returns `None` in place of a refund if there are no such units, or
    /// if their window or block no longer counts at `now`.
    pub(super) fn all_unused(&mut self, now: Timestamp) -> [Option<Operation>; 2] {
        let counts =
            |entry: &Self, position| now < refundable_until(&entry.account.limit, position);
        let (position, units) = self.take_former();
        let former = (units > 0 && counts(self, position)).then(|| refunded(units, position));
        let is_open = counts(self, self.position);
        let current = if is_open { self.release_units(self.unused) } else { None };
        [former, current]
    }

    /// Returns a refund of unused units. Units that are unused at the previous position are
    /// refunded first. If the previous position has no unused units, the refund contains the unused
    /// units that exceed the usage of [`HISTORY_SWEEPS`] sweep periods. Returns `None` if there are
    /// no units to refund. Called at each sweep.
    pub(super) fn surplus(&mut self) -> Option<Operation> {
        let kept = self.spent.saturating_mul(HISTORY_SWEEPS);
        self.quiet = if self.spent == 0 { self.quiet.saturating_add(1) } else { 0 };
        self.spent = 0;
        let (position, units) = self.take_former();
        if units > 0 {
            return Some(refunded(units, position));
        }
        let units = self.unused.saturating_sub(kept);
        if units > 0 {
            self.size = (self.size / 2).max(1);
        }
        self.release_units(units)
    }

    /// Returns whether the entry was not charged for [`IDLE_SWEEPS`] sweeps and has no units to
    /// refund.
    pub(super) fn is_abandoned(&self) -> bool {
        let is_empty = self.unused == 0 && !self.has_former_units();
        self.quiet >= IDLE_SWEEPS && is_empty && self.turn.is_none()
    }

    /// Removes the unused units of the last closed lease, and returns them with their position.
    fn take_former(&mut self) -> (ChargePosition, u64) {
        std::mem::replace(&mut self.former, (self.position, 0))
    }

    fn release_units(&mut self, units: u64) -> Option<Operation> {
        if units == 0 {
            return None;
        }
        self.unused -= units;
        self.used = self.used.saturating_sub(units);
        Some(refunded(units, self.position))
    }
}

/// Returns the operation that refunds `units` unused units at `position`.
fn refunded(units: u64, position: ChargePosition) -> Operation {
    let (cost, id) = (Cost::up_to(units), new_charge_id());
    Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded }
}

#[cfg(test)]
mod tests;
