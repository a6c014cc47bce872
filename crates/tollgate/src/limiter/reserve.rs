//! Reservations: units that are held until it is known what a request really cost.

use std::sync::Arc;

use tollgate_core::policy::{ChargeOn, Plan};
use tollgate_core::{
    Admission, Charge, Cost, DecisionSource, Limit, LimitStatus, Millis, Reading,
    RequestAttributes, Store, StoreError, Timestamp,
};

use super::redeem::RedeemError;
use super::taking::Taking;
use super::{Decision, Limiter, Terms};
use crate::receipt::{Receipt, ReceiptError, UnsealedReceipt};
use crate::revision::Revision;

/// What became of a reservation that was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldOutcome {
    /// It was held, and what was asked is done.
    Done,
    /// Nothing: it was settled before, or ran out.
    Unchanged,
    /// Nothing: its receipt is too old.
    Expired,
}

/// What a settlement did.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The policy by which the receipt was read.
    pub policy: Arc<Revision>,
    /// Each limit that was reserved and still is in the policy; none if the receipt has expired.
    pub limits: Vec<SettledLimit>,
    /// Whether there was anything to settle.
    pub outcome: HoldOutcome,
}

/// What a settlement did to one limit, and how it stands after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledLimit {
    /// Whole units that were given back of what was held; none if its window is over.
    pub refunded: u64,
    /// Whole units that were taken beyond what was held, as far as capacity and overdraft allow.
    pub added: u64,
    /// How it stands, for a cost of one unit.
    pub status: LimitStatus,
}

/// What an extension did.
#[derive(Clone, Debug)]
pub struct Extended {
    /// The policy by which the receipt was read.
    pub policy: Arc<Revision>,
    /// Whether every limit still held the reservation.
    pub outcome: HoldOutcome,
    /// When the first of them runs out now, where all did.
    pub until: Timestamp,
    /// The text to use from now on: the one that was shown is good until its own end only.
    pub receipt: Option<String>,
    /// How each limit stands.
    pub statuses: Vec<LimitStatus>,
}

impl<S: Store> Limiter<S> {
    /// Decides on a request, now, and holds what its policy says for `hold_for`, or as long as each
    /// limit lets it: until then it is settled, or is released or charged as the limit says.
    ///
    /// All or nothing, as [`check`](Self::check). The receipt is the reservation's.
    pub fn reserve(
        &self,
        attributes: &RequestAttributes<'_>,
        hold_for: Millis,
    ) -> impl Future<Output = Decision> + Send + use<'_, S> {
        let policy = self.policy();
        let now = self.now();
        let plan = self.plan_at(now, &policy, attributes);
        let terms = Terms { charge: ChargeOn::Arrival, on_failure: plan.on_failure() };
        self.reserve_on_terms_at(now, &policy, plan, terms, hold_for)
    }

    /// As [`reserve`](Self::reserve), at a time of the caller's choice, by a plan that the caller
    /// has made of `policy` and on the caller's terms. It is charged on arrival, whatever they say.
    pub fn reserve_on_terms_at<'s>(
        &'s self,
        now: Timestamp,
        policy: &Arc<Revision>,
        plan: Plan<'_>,
        terms: Terms,
        hold_for: Millis,
    ) -> impl Future<Output = Decision> + Send + use<'s, S> {
        let terms = Terms { charge: ChargeOn::Arrival, ..terms };
        self.decide_at(now, policy, plan, terms, Taking::Reservation(now.after(hold_for)), None)
    }

    /// Puts in the place of what `receipt` holds what `real` says that it cost, of a limit and what
    /// it holds: what is left is given back, and what is more is taken now.
    ///
    /// # Errors
    /// [`RedeemError`]: it is of no reservation, or the store has no answer; then the reservation
    /// runs out as it would have.
    pub async fn settle(
        &self,
        receipt: Receipt,
        real: impl Fn(&Limit, Cost) -> Cost + Send,
    ) -> Result<Settled, RedeemError> {
        let opened = UnsealedReceipt { expires_at: Timestamp::from_millis(u64::MAX), receipt };
        self.settle_opened(self.now(), self.policy(), opened, real).await
    }

    /// As [`settle`](Self::settle), of what the `text` of a receipt holds. Shown again, it changes
    /// nothing more.
    ///
    /// # Errors
    /// As [`settle`](Self::settle); where the store has no answer it can be shown again.
    pub async fn settle_at(
        &self,
        now: Timestamp,
        text: &str,
        real: impl Fn(&Limit, Cost) -> Cost + Send,
    ) -> Result<Settled, RedeemError> {
        let policy = self.policy();
        let opened = self.open(text, &policy)?;
        self.settle_opened(now, policy, opened, real).await
    }

    /// Puts the end of what the `text` of a receipt holds off to `hold_for` from `now`, or as far
    /// as each limit lets it; never nearer.
    ///
    /// # Errors
    /// [`RedeemError`]: it is of no reservation, or the store has no answer; then it can be shown
    /// again.
    pub async fn extend_at(
        &self,
        now: Timestamp,
        text: &str,
        hold_for: Millis,
    ) -> Result<Extended, RedeemError> {
        let policy = self.policy();
        let UnsealedReceipt { receipt, expires_at } = self.open(text, &policy)?;
        check_reserved(&receipt)?;
        let unchanged = |outcome, statuses| {
            let policy = Arc::clone(&policy);
            Extended { policy, outcome, until: expires_at, receipt: None, statuses }
        };
        if now >= expires_at {
            return Ok(unchanged(HoldOutcome::Expired, Vec::new()));
        }
        let until = now.after(hold_for);
        let receipt = self.as_overridden(now, receipt);
        let readings = self.ask_about(now, &receipt.extensions(until)).await?;
        let status = |(limit, reading): (&Arc<Limit>, &Reading)| {
            LimitStatus::new(Arc::clone(limit), Cost::PEEK, reading)
        };
        let statuses = receipt.limits().zip(&readings).map(status).collect();
        if readings.is_empty() || readings.iter().any(|reading| reading.admission != Admission::Now)
        {
            return Ok(unchanged(HoldOutcome::Unchanged, statuses));
        }
        // What ends later than that does so still.
        let receipt = receipt.extended(until.max(expires_at));
        let until = receipt.ends_at(now).unwrap_or(until);
        let text = receipt.seal(self.key(), now);
        let outcome = HoldOutcome::Done;
        Ok(Extended { policy, outcome, until, receipt: Some(text), statuses })
    }

    async fn settle_opened(
        &self,
        now: Timestamp,
        policy: Arc<Revision>,
        opened: UnsealedReceipt,
        real: impl Fn(&Limit, Cost) -> Cost + Send,
    ) -> Result<Settled, RedeemError> {
        let UnsealedReceipt { receipt, expires_at } = opened;
        check_reserved(&receipt)?;
        if now >= expires_at {
            return Ok(Settled { policy, limits: Vec::new(), outcome: HoldOutcome::Expired });
        }
        let receipt = self.as_overridden(now, receipt);
        let readings = self.ask_about(now, &receipt.settlements(real)).await?;
        let settled = |(limit, reading): (&Arc<Limit>, &Reading)| SettledLimit {
            refunded: reading.refunded,
            added: reading.added,
            status: LimitStatus::new(Arc::clone(limit), Cost::PEEK, reading),
        };
        let limits = receipt.limits().zip(&readings).map(settled).collect();
        let was_held = readings.iter().any(|reading| reading.admission == Admission::Now);
        let outcome = if was_held { HoldOutcome::Done } else { HoldOutcome::Unchanged };
        Ok(Settled { policy, limits, outcome })
    }

    /// What the store says that made the reservation: what stands in for it did not.
    async fn ask_about(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Vec<Reading>, RedeemError> {
        if charges.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.store.apply(now, charges).await;
        self.tell_held(charges, &answer);
        let readings = answer.map_err(RedeemError::Store)?;
        match readings.source() {
            DecisionSource::Fallback(error) | DecisionSource::Failure(error) => {
                Err(RedeemError::Store(error))
            }
            DecisionSource::Store | DecisionSource::DenyCache
                if readings.len() != charges.len() =>
            {
                Err(RedeemError::Store(StoreError::Corrupt))
            }
            DecisionSource::Store | DecisionSource::DenyCache => Ok(readings.to_vec()),
        }
    }
}

const fn check_reserved(receipt: &Receipt) -> Result<(), RedeemError> {
    if receipt.is_reservation() {
        Ok(())
    } else {
        Err(RedeemError::Receipt(ReceiptError::NotReserved))
    }
}
