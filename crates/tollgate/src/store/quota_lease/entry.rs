//! What a node has of one limit and subject: pure, told what the store answered and what time it is.

use std::sync::Arc;

use tokio::sync::watch;
use tollgate_core::decide::refundable_until;
use tollgate_core::{
    Admission, ChargePosition, Cost, Deduplication, LeaseSpan, Limit, Operation, Reading,
    StoreError, StoredState, Subject, Timestamp,
};

use super::config::{FAST_EXHAUSTION, FIRST_CHARGES, LeaseConfig};
use crate::receipt::new_charge_id;

/// The sweeps for which the units that were used since the last one are kept.
const HISTORY_SWEEPS: u64 = 4;

/// The sweeps without a charge after which a place is given up.
const IDLE_SWEEPS: u8 = 8;

/// A limit and a subject, for whoever outlives a charge on them.
#[derive(Debug)]
pub(super) struct LeaseSubject {
    pub(super) limit: Limit,
    pub(super) subject: Subject,
}

/// What became of an attempt to take a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseOutcome {
    /// There are units.
    Taken,
    /// There are none: each charge is for the store.
    Refused,
    /// The store has no answer.
    Failed(StoreError),
}

/// How many answers of the store had been heard when it was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyCount(u64);

/// Hears what becomes of an attempt.
pub(super) type LeaseReceiver = watch::Receiver<Option<LeaseOutcome>>;

/// The units that a node has of one limit and subject, in one window or block.
///
/// `unused` have been counted by the store at `position`, and are used by nobody else. What comes to
/// them was counted there as well: units that were taken for it, or given back to this node that it
/// was itself admitted there (`own`).
pub(super) struct LeaseEntry {
    pub(super) account: Arc<LeaseSubject>,
    position: ChargePosition,
    span: LeaseSpan,
    unused: u64,
    /// What was unused at the place before, and still counts there until it is given back.
    former: (ChargePosition, u64),
    /// What the store had counted at the last answer, with all that is unused.
    used: u64,
    /// Answers of the store that were heard: whether another came between a call and its own.
    heard: ReplyCount,
    /// What this node was admitted at this place, and did not give back. A lease is only taken
    /// where there is some, so that none opens a window that no charge would have opened.
    own: u64,
    /// The units of the next lease.
    size: u64,
    taken_at: Option<Timestamp>,
    /// Units used since the last sweep.
    spent: u64,
    quiet: u8,
    pub(super) seen: Timestamp,
    pub(super) turn: Option<LeaseReceiver>,
}

impl LeaseEntry {
    /// That of a charge of `cost`, which the store admitted at `now` with this reading.
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
            heard: ReplyCount::default(),
            own: cost.get(),
            size: cost.get().saturating_mul(FIRST_CHARGES),
            taken_at: None,
            spent: cost.get(),
            quiet: 0,
            seen: now,
            turn: None,
        })
    }

    /// Whether it is of this very definition: marks of another one say something else.
    pub(super) fn is_of(&self, limit: &Limit) -> bool {
        self.account.limit.algorithm() == limit.algorithm()
    }

    /// Carries `operation` out with what this node has; `None` where the store has to be asked.
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
            // How it stands for no cost is asked by who wants to hear what the store knows.
            Operation::Peek { cost } if is_live && cost != Cost::PEEK && self.covers(cost) => {
                Some(self.reading())
            }
            Operation::Refund {
                cost, position, deduplication: Deduplication::Unneeded, ..
            } if is_live => self.restore_units(cost, position, config),
            _ => None,
        }
    }

    /// Whether `cost` can be used, and once more by all that is known: what comes close to the limit
    /// is decided where all of it is known.
    fn covers(&self, cost: Cost) -> bool {
        let told = self.used.saturating_sub(self.unused);
        let left = self.account.limit.capacity().saturating_sub(told);
        cost.needed() <= self.unused && cost.get().saturating_add(cost.needed()) <= left
    }

    /// Adds to what is unused what this node was admitted here, if it is none too many.
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
        let told = self.used.saturating_sub(unused);
        if !is_here || unused > at_most || told >= self.account.limit.capacity() {
            return None;
        }
        self.unused = unused;
        self.own -= units;
        Some(Reading { refunded: units, ..self.reading() })
    }

    /// How the limit stands for one more charge, which fits.
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

    /// Undoes a take that was answered here with this mark; how the limit stands then.
    pub(super) fn undo_take(&mut self, cost: Cost, position: ChargePosition) -> Option<Reading> {
        if position != self.position {
            return None;
        }
        self.unused = self.unused.saturating_add(cost.get());
        self.own = self.own.saturating_sub(cost.get());
        self.spent = self.spent.saturating_sub(cost.get());
        Some(self.reading())
    }

    /// The units that are to be taken at `now` so that `cost` is covered; `None` where that is too
    /// small a part of what is left, or where nothing is known of the place in force.
    pub(super) fn wanted(
        &mut self,
        cost: Cost,
        now: Timestamp,
        config: &LeaseConfig,
    ) -> Option<u64> {
        if !self.span.includes(now) || self.own == 0 || self.former.1 > 0 {
            return None;
        }
        let at_most = config.max_unused_units(&self.account.limit);
        if self.taken_at.take().is_some_and(|taken| now.since(taken) < FAST_EXHAUSTION) {
            self.size = self.size.saturating_mul(2).min(at_most);
        }
        let left = self.account.limit.capacity().saturating_sub(self.used);
        let whole = self.size.max(cost.get().saturating_mul(2)).min(config.part_of(left));
        (whole > cost.get()).then(|| whole.saturating_sub(self.unused)).filter(|units| *units > 0)
    }

    /// How many answers of the store have been heard by now.
    pub(super) fn replies(&self) -> ReplyCount {
        self.heard
    }

    /// Hears what the store had counted when it answered who had asked at `asked`. Answers that were
    /// under way at one time arrive in any order: of those the last may be the older, and no less is
    /// used than what this node was admitted and has unused.
    fn observe_reply(&mut self, used: u64, asked: Option<ReplyCount>) {
        let is_last = asked == Some(self.heard);
        self.heard.0 = self.heard.0.wrapping_add(1);
        self.used = if is_last { used } else { used.max(self.own.saturating_add(self.unused)) };
    }

    /// Hears that the store admitted `units` for the next lease, or refused them. What was put
    /// somewhere else is to be given back there.
    pub(super) fn finish(
        &mut self,
        units: u64,
        reading: &Reading,
        now: Timestamp,
        asked: ReplyCount,
    ) -> (LeaseOutcome, bool) {
        let is_here = reading.position == self.position;
        let is_taken = reading.admission == Admission::Now;
        if !is_here || reading.reserved > 0 {
            self.close();
        }
        if is_here && is_taken {
            self.unused = self.unused.saturating_add(units);
        }
        if is_here {
            self.observe_reply(reading.used, Some(asked));
        }
        if !is_here || !is_taken {
            return (LeaseOutcome::Refused, is_taken);
        }
        self.taken_at = Some(now);
        self.seen = self.seen.max(now);
        (LeaseOutcome::Taken, false)
    }

    /// Hears what the store answered to an ask that it was not only asked to read by; `admitted` is
    /// what it took for it.
    pub(super) fn learn(
        &mut self,
        operation: Operation,
        reading: &Reading,
        admitted: Cost,
        now: Timestamp,
        asked: Option<ReplyCount>,
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
        }
        self.own = self.own.saturating_add(admitted.get());
        self.spent = self.spent.saturating_add(admitted.get());
        if let Operation::Refund { position, .. } | Operation::Settle { position, .. } = operation
            && position == self.position
        {
            self.own = self.own.saturating_sub(reading.refunded);
        }
        self.observe_reply(reading.used, asked);
        self.seen = self.seen.max(now);
    }

    /// Nobody knows which place is in force: what is unused is used no more. Of a window that is over
    /// it is void; a block that is over counts for the rest of its window, and gets it back.
    fn close(&mut self) {
        if self.unused > 0 {
            self.former = (self.position, self.unused);
        }
        (self.unused, self.own) = (0, 0);
        self.taken_at = None;
    }

    /// The reading of who only looked, without the units that are unused here; `None` if it is not
    /// known how the limit would stand without them.
    pub(super) fn corrected(
        &self,
        reading: &Reading,
        asked: Option<ReplyCount>,
    ) -> Option<Reading> {
        if self.unused == 0 {
            return Some(*reading);
        }
        let is_here = reading.position == self.position
            && reading.admission == Admission::Now
            && self.own > 0;
        let at_least = self.own.saturating_add(self.unused);
        let is_known = is_here && (asked == Some(self.heard) || reading.used >= at_least);
        is_known.then(|| Reading { used: reading.used.saturating_sub(self.unused), ..*reading })
    }

    /// What gives back all that is unused, if its place counts at `now`.
    pub(super) fn all_unused(&mut self, now: Timestamp) -> Option<Operation> {
        let counts = now < refundable_until(&self.account.limit, self.position);
        if counts { self.give(self.unused) } else { None }
    }

    /// What gives back more than some sweeps' worth of use, or what is left of a place before.
    /// Called at each sweep.
    pub(super) fn surplus(&mut self) -> Option<Operation> {
        let kept = self.spent.saturating_mul(HISTORY_SWEEPS);
        self.quiet = if self.spent == 0 { self.quiet.saturating_add(1) } else { 0 };
        self.spent = 0;
        let (position, units) = std::mem::replace(&mut self.former, (self.position, 0));
        if units > 0 {
            return Some(refunded(units, position));
        }
        let units = self.unused.saturating_sub(kept);
        if units > 0 {
            self.size = (self.size / 2).max(1);
        }
        self.give(units)
    }

    /// Whether nobody has asked for long, and nothing is left to give back.
    pub(super) fn is_abandoned(&self) -> bool {
        let is_empty = self.unused == 0 && self.former.1 == 0;
        self.quiet >= IDLE_SWEEPS && is_empty && self.turn.is_none()
    }

    fn give(&mut self, units: u64) -> Option<Operation> {
        if units == 0 {
            return None;
        }
        self.unused -= units;
        self.used = self.used.saturating_sub(units);
        Some(refunded(units, self.position))
    }
}

/// What gives units back that nobody used.
fn refunded(units: u64, position: ChargePosition) -> Operation {
    let (cost, id) = (Cost::up_to(units), new_charge_id());
    Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded }
}
