//! The check that a concurrency limit has at most its quota of permits in flight.

use std::collections::BTreeMap;

use tollgate_core::algo::Concurrency;
use tollgate_core::{ChargeId, Operation};

use super::super::call::{Moment, NEVER};
use super::*;

/// Checks the permits that were certainly held at the same time. A permit is certainly held from
/// the answer that granted the permit until it may have been released, or until a caller's clock
/// passed its expiry. Renewals are ignored, because a renewal can only extend a permit.
pub(super) fn check(case: &mut Case<'_, '_>, limit: &Concurrency) {
    let leases = Leases::of(case.account);
    for epoch in &case.account.epochs {
        let mut changes = Vec::new();
        for event in epoch.iter().filter(|event| event.admitted() > 0) {
            let Some(id) = event.id() else { continue };
            let expired = case.clocks.reaching(event.now.after(limit.permit_ttl()));
            let until = leases.refunded(id).min(expired);
            // If an id is charged twice, it has only one permit, and either of the two calls may
            // have acquired the permit.
            if leases.is_single(id) && event.answered < until {
                changes.push((event.answered, event.admitted(), event));
                changes.push((until, -event.admitted(), event));
            }
        }
        changes.sort_by_key(|(moment, units, _)| (*moment, *units));
        let mut held = 0;
        for (_, units, event) in changes {
            held += units;
            if held > case.most() {
                let what = format!("{held} in flight of {}", case.most());
                case.violates(Rule::Quota, what, &[event]);
                break;
            }
        }
    }
}

/// For each permit id, the number of charges with this id, and the moment at which a release of the
/// permit was first sent.
struct Leases(BTreeMap<ChargeId, (u32, Moment)>);

impl Leases {
    fn of(account: &Account<'_>) -> Self {
        let mut leases = BTreeMap::new();
        for event in &account.events {
            let Some(id) = event.id() else { continue };
            let (taken, refunded) = leases.entry(id).or_insert((0, NEVER));
            match event.operation {
                Operation::Charge { .. } | Operation::Reserve { .. }
                    if event.may_be_admitted() > 0 =>
                {
                    *taken += 1;
                }
                Operation::Refund { .. } | Operation::Settle { .. } => {
                    *refunded = event.issued.min(*refunded);
                }
                _ => {}
            }
        }
        Self(leases)
    }

    fn is_single(&self, id: ChargeId) -> bool {
        self.0.get(&id).is_some_and(|(taken, _)| *taken == 1)
    }

    fn refunded(&self, id: ChargeId) -> Moment {
        self.0.get(&id).map_or(NEVER, |(_, refunded)| *refunded)
    }
}
