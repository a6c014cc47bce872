//! At most the quota is in flight.

use std::collections::BTreeMap;

use tollgate_core::algo::Concurrency;
use tollgate_core::{ChargeId, Operation};

use super::super::call::{Moment, NEVER};
use super::*;

/// Checks the permits that were certainly held at the same time: each from its answer until it may
/// have been released, or until a caller's clock had passed its end. Renewals could only extend
/// them.
pub(super) fn check(case: &mut Case<'_, '_>, limit: &Concurrency) {
    let leases = Leases::of(case.account);
    for epoch in &case.account.epochs {
        let mut changes = Vec::new();
        for event in epoch.iter().filter(|event| event.admitted() > 0) {
            let Some(id) = event.id() else { continue };
            let expired = case.clocks.reaching(event.now.after(limit.permit_ttl()));
            let until = leases.refunded(id).min(expired);
            // An id that is charged twice holds one permit, and it is unknown from which of the two
            // calls.
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

/// How often each id was charged, and when its release was first sent.
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
