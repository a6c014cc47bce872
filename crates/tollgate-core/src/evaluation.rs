//! What is told of a charge: remaining, reset and retry are computed here and nowhere else.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::charge::Operation;
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::decide::decide;
use crate::limit::{Algorithm, Limit, Visibility};
use crate::reading::{Admission, Reading};
use crate::time::{Millis, Timestamp};

/// How one limit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// The limit.
    pub limit: Arc<Limit>,
    /// What was asked of it.
    pub cost: Cost,
    /// Whole units used, after the charge if it was admitted.
    pub used: u64,
    /// Whole units that are left: the capacity less what is used, never below zero. A limit that
    /// refused never shows enough for the cost.
    pub remaining: u64,
    /// While the same charge still fits: when the limit is whole again. Once it does not: the
    /// first moment at which it fits again.
    pub resets_at: Timestamp,
    /// When nothing of the limit is used any more, if nobody charges meanwhile.
    pub full_reset_at: Timestamp,
    /// Whether this limit by itself admits the charge, and if not when.
    pub admission: Admission,
    /// Whole units that are reserved and not settled yet; of a concurrency limit all that is used.
    pub reserved: u64,
}

impl LimitStatus {
    /// The status of `limit` that `reading` tells.
    #[must_use]
    pub fn new(limit: Arc<Limit>, cost: Cost, reading: &Reading) -> Self {
        let resets_at = match reading.fits_again {
            Admission::At(ready_at) => ready_at,
            Admission::Now | Admission::Never => reading.full_reset_at,
        };
        let remaining = limit.capacity().saturating_sub(reading.used);
        let Reading { used, full_reset_at, admission, .. } = *reading;
        let reserved = match limit.algorithm() {
            Algorithm::Concurrency(_) => used,
            _ => reading.reserved,
        };
        Self { limit, cost, used, remaining, resets_at, full_reset_at, admission, reserved }
    }

    /// The status after its cost was given back. A lease is held until the request ends, also
    /// where the request turns out to be free.
    #[must_use]
    pub fn refunded(mut self) -> Self {
        if matches!(self.limit.algorithm(), Algorithm::Concurrency(_)) {
            return self;
        }
        self.used = self.used.saturating_sub(self.cost.get());
        self.remaining = self.limit.capacity().saturating_sub(self.used);
        self
    }

    /// The status of a look that fits, as it reads once its cost is charged at `at`, if nobody
    /// else charges meanwhile.
    ///
    /// Of a fixed window it is what the charge itself will tell, unless all that was used of it was
    /// given back; of any other limit that then has no room for the same again, `resets_at` is when
    /// it is whole. Where it is not exact it is late, never early.
    #[must_use]
    pub fn charged(mut self, at: Timestamp) -> Self {
        if self.cost == Cost::PEEK {
            return self;
        }
        let operation = Operation::Charge { cost: self.cost, id: ChargeId::default() };
        let alone = decide(None, &self.limit, operation, at).0.full_reset_at;
        // Nothing used is a window not opened yet, or one that was given back whole.
        let is_over = self.used == 0 || self.resets_at <= at;
        let used_before = if is_over { 0 } else { self.used };
        let charged = |moment: Timestamp| match self.limit.algorithm() {
            _ if is_over => alone,
            Algorithm::FixedWindow(_) => moment,
            // What fills the bucket fills up one charge after the other.
            Algorithm::TokenBucket(_) => moment.after(alone.since(at)),
            _ => moment.max(alone),
        };
        (self.resets_at, self.full_reset_at) =
            (charged(self.resets_at), charged(self.full_reset_at));
        self.used = used_before.saturating_add(self.cost.get());
        self.remaining = self.limit.capacity().saturating_sub(self.used);
        self
    }

    /// Whether this limit refused the charge.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.admission != Admission::Now
    }

    /// Whether clients are told of it.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        self.limit.visibility() == Visibility::Visible
    }

    /// Whether less of this limit is left than of `other`, as a share of its capacity.
    fn is_tighter_than(&self, other: &Self) -> bool {
        let share =
            |one: &Self, of: &Self| u128::from(one.remaining) * u128::from(of.limit.capacity());
        (share(self, other), self.remaining) < (share(other, self), other.remaining)
    }
}

/// The answer to a charge over any number of limits.
///
/// Admitted if every limit admits it; then every one is charged. Otherwise refused, and none is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// When it was decided.
    pub now: Timestamp,
    /// Every limit of the charge, in the policy's order.
    pub statuses: Vec<LimitStatus>,
}

impl Evaluation {
    /// The evaluation of a store that had no answer.
    #[must_use]
    pub const fn without_statuses(now: Timestamp) -> Self {
        Self { now, statuses: Vec::new() }
    }

    /// Whether every limit admits the charge.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.refusals().next().is_none()
    }

    /// The limits that refused.
    pub fn refusals(&self) -> impl Iterator<Item = &LimitStatus> {
        self.statuses.iter().filter(|status| status.is_refusal())
    }

    /// Whether the charge costs more than a limit can ever hold: waiting will not help.
    #[must_use]
    pub fn never_fits(&self) -> bool {
        self.statuses.iter().any(|status| status.admission == Admission::Never)
    }

    /// How long to wait until every limit that refused admits the same charge, if nobody else
    /// charges meanwhile: not a millisecond less. `None` if it was admitted or never will be.
    #[must_use]
    pub fn retry_after(&self) -> Option<Millis> {
        if self.never_fits() {
            return None;
        }
        let ready = self.statuses.iter().filter_map(|status| match status.admission {
            Admission::At(ready_at) => Some(ready_at.since(self.now)),
            Admission::Now | Admission::Never => None,
        });
        ready.max()
    }

    /// The one limit to tell a client of that wants to hear of one: of those that refused the one
    /// with the longest wait, else the one with the smallest share left. Hidden ones are not told.
    ///
    /// `None` where only hidden limits refused: no other status would be true of the refusal.
    #[must_use]
    pub fn tightest(&self) -> Option<&LimitStatus> {
        let visible = |status: &&LimitStatus| status.is_visible();
        if self.is_admitted() {
            return self.statuses.iter().filter(visible).reduce(|tightest, other| {
                if other.is_tighter_than(tightest) { other } else { tightest }
            });
        }
        self.refusals().filter(visible).reduce(|longest, other| {
            if other.resets_at > longest.resets_at { other } else { longest }
        })
    }

    /// The evaluation as it reads after everything that it counted was given back.
    #[must_use]
    pub fn refunded(mut self) -> Self {
        self.statuses = self.statuses.into_iter().map(LimitStatus::refunded).collect();
        self
    }
}
