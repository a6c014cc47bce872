//! Serves `POST /v1/reserve`, `/v1/extend` and `/v1/settle`: reservations of units for a cost that
//! is known later.

use tollgate::limiter::{DecisionRequest, Reservation};
use tollgate::limiter::{Extended, HoldOutcome, Settled, SettledLimit};
use tollgate::model::policy::NameError;
use tollgate::model::time::MAX_WINDOW;
use tollgate::model::{Cost, Limit, Millis, Policy, Store};

use super::app::App;
use super::check::unknown_name;
use super::json::{self, Fault, Object};
use super::prefer::Detail;
use super::problem::Problem;
use super::refund::unread;
use super::respond::Answer;
use super::wire::{
    ActualCost, CheckRequest, ExtendOutcome, ExtendRequest, ExtendResponse, LimitStatusBody,
    MAX_LIMITS, ReserveRequest, SettleOutcome, SettleRequest, SettleResponse, SettledLimitStatus,
    Units,
};

impl<S: Store + 'static> App<S> {
    /// Reserves the units that a check would charge.
    pub(super) async fn reserve(&self, body: &[u8]) -> Answer {
        let (now, policy) = (self.limiter.now(), self.limiter.policy());
        let ReserveRequest { limits, request, ttl_ms } = json::read(body)?;
        let request = self.plan_request(now, &policy, &CheckRequest { limits, request })?;
        let reservation = Reservation::All(hold_for(ttl_ms));
        let request = DecisionRequest { reservation, ..request };
        let mut decision = self.limiter.decide_or_release(request).await;
        Ok(json::write(&self.decision_answer(&mut decision, Detail::Full))?)
    }

    /// Extends the reservation of a receipt.
    pub(super) async fn extend(&self, body: &[u8]) -> Answer {
        let ExtendRequest { receipt, ttl_ms } = json::read(body)?;
        let extended = self.limiter.extend_at(self.limiter.now(), &receipt, hold_for(ttl_ms));
        Ok(json::write(&put_off(&extended.await.map_err(unread)?))?)
    }

    /// Replaces the reserved units of a receipt by the actual cost.
    pub(super) async fn settle(&self, body: &[u8]) -> Answer {
        let SettleRequest { receipt, cost, limits } = json::read(body)?;
        let now = self.limiter.now();
        let settled = match (cost, limits) {
            (Some(cost), None) => {
                let cost = cost.cost();
                self.limiter.settle_at(now, &receipt, |_, _| cost).await
            }
            (None, Some(limits)) => {
                check_names(&self.limiter.policy(), &limits)?;
                let real = |limit: &Limit, held: Cost| {
                    let is_it = |it: &&Object<ActualCost<'_>>| it.0.name == limit.name();
                    limits.iter().find(is_it).map_or(held, |it| it.0.cost.cost())
                };
                self.limiter.settle_at(now, &receipt, real).await
            }
            _ => return Err(Fault::at("", "give either \"cost\" or \"limits\"").into()),
        };
        Ok(json::write(&paid(&settled.map_err(unread)?))?)
    }
}

/// Returns the duration of a reservation. Without `ttl_ms`, only the maximum of each limit bounds
/// the duration.
fn hold_for(ttl_ms: Option<Units>) -> Millis {
    ttl_ms.map_or(MAX_WINDOW, |millis| Millis::new(millis.cost().get()))
}

/// Checks that each name is the name of a limit of the policy and is present only once.
fn check_names(policy: &Policy, limits: &[Object<ActualCost<'_>>]) -> Result<(), Problem> {
    if !(1..=MAX_LIMITS).contains(&limits.len()) {
        let message = format!("a settlement has 1 to {MAX_LIMITS} limits, not {}", limits.len());
        return Err(Fault::at("/limits", message).into());
    }
    for (index, Object(ActualCost { name, .. })) in limits.iter().enumerate() {
        let pointer = format!("/limits/{index}");
        if !policy.limits().iter().any(|known| known.limit.name() == name) {
            let unknown = NameError::Limit(name.as_ref().into());
            return Err(unknown_name(policy, &unknown).at(pointer));
        }
        if limits[..index].iter().any(|before| before.0.name == *name) {
            return Err(Fault::at(&pointer, format!("{name:?} is given twice")).into());
        }
    }
    Ok(())
}

fn put_off(extended: &Extended) -> ExtendResponse<'_> {
    ExtendResponse {
        outcome: match extended.outcome {
            HoldOutcome::Done => ExtendOutcome::Extended,
            HoldOutcome::Unchanged => ExtendOutcome::Unchanged,
            HoldOutcome::Expired => ExtendOutcome::Expired,
        },
        policy: extended.policy.version(),
        expires_at_ms: extended.receipt.is_some().then(|| extended.until.as_millis()),
        receipt: extended.receipt.as_deref(),
        statuses: &extended.statuses,
    }
}

fn paid<'s>(settled: &'s Settled) -> SettleResponse<'s> {
    let limit = |SettledLimit { refunded, added, status: limit_status }: &'s SettledLimit| {
        SettledLimitStatus {
            refunded: *refunded,
            added: *added,
            limit_status: LimitStatusBody::of(limit_status),
        }
    };
    SettleResponse {
        outcome: match settled.outcome {
            HoldOutcome::Done => SettleOutcome::Settled,
            HoldOutcome::Unchanged => SettleOutcome::Unchanged,
            HoldOutcome::Expired => SettleOutcome::Expired,
        },
        policy: settled.policy.version(),
        limits: settled.limits.iter().map(limit).collect(),
    }
}
