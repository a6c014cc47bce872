//! Charges that depend on the status of the response.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::metered::{Estimate, Meter};
use super::response_terms::ResponseTerms;
use crate::cost::Cost;
use crate::status_set::StatusSet;

/// A part of a charge that stays charged or is refunded depending on the status of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalCost {
    /// The units of this part of the charge.
    pub cost: Cost,
    /// The statuses of the response for which this part stays charged or is refunded.
    pub terms: ResponseTerms,
}

/// The effect of a response on the charges of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// All charges remain. A request without a known response has this settlement too.
    Charged,
    /// All charges are refunded.
    Free,
    /// The response has this status, and the [`ResponseTerms`] of each charge determine whether the
    /// charge remains.
    Status {
        /// The status of the response to the request.
        status: u16,
        /// Whether a charge is refunded if its terms do not state for which statuses the rule
        /// refunds.
        is_free: bool,
    },
}

impl Settlement {
    /// Returns whether a charge with these terms stays charged after the response.
    #[must_use]
    pub fn keeps(self, terms: &ResponseTerms) -> bool {
        match self {
            Self::Charged => true,
            Self::Free => false,
            Self::Status { status, is_free } => {
                let is_refunded =
                    terms.refund.as_ref().map_or(is_free, |refund| refund.contains(status));
                let is_counted =
                    terms.counted.as_ref().is_none_or(|counted| counted.contains(status));
                is_counted && !is_refunded
            }
        }
    }

    /// Returns the units of a charge of `cost` that stay charged after the response. `measured`
    /// returns the actual cost of an estimate, which counts in place of the reserved units. If
    /// `measured` returns `None`, the reserved units count.
    #[must_use]
    pub fn kept(
        self,
        cost: Cost,
        estimates: &[Estimate],
        conditions: &[ConditionalCost],
        measured: impl Fn(&Meter) -> Option<Cost>,
    ) -> Cost {
        let reserved = estimates.iter().map(|estimate| estimate.reserved);
        let parts = reserved.chain(conditions.iter().map(|part| part.cost));
        let rest = parts.fold(cost.get(), |rest, part| rest.saturating_sub(part.get()));
        let rest = if self.keeps(&ResponseTerms::default()) { rest } else { 0 };
        let kept = conditions.iter().filter(|part| self.keeps(&part.terms));
        let kept = kept.fold(Cost::up_to(rest), |kept, part| kept.plus(part.cost));
        let real = estimates.iter().filter(|estimate| self.keeps(&estimate.terms));
        real.fold(kept, |kept, estimate| {
            kept.plus(measured(&estimate.meter).unwrap_or(estimate.reserved))
        })
    }
}

/// Sets, for every part of a charge of `cost`, the statuses for which the rule refunds it.
/// `conditions` are the parts of the charge. If there are none, the whole charge becomes one part.
pub(super) fn refund_for(
    conditions: &mut Vec<ConditionalCost>,
    cost: Cost,
    refund: &Arc<StatusSet>,
) {
    if conditions.is_empty() {
        conditions.push(ConditionalCost { cost, terms: ResponseTerms::default() });
    }
    for part in conditions {
        part.terms.refund = Some(Arc::clone(refund));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_cost_follows_its_own_terms() {
        let set = |status| Some(Arc::new(StatusSet::default().with(status, status)));
        let part = |cost, counted, refund| ConditionalCost {
            cost: Cost::up_to(cost),
            terms: ResponseTerms { counted, refund },
        };
        let parts = [part(2, set(401), None), part(4, None, set(304))];
        let kept = |status, is_free| {
            let settlement = Settlement::Status { status, is_free };
            settlement.kept(Cost::up_to(7), &[], &parts, |_| None).get()
        };
        // The cost of 7 has two parts of 2 and 4 units, and one unit without terms.
        assert_eq!(kept(401, false), 7);
        assert_eq!(kept(200, false), 5);
        assert_eq!(kept(304, false), 1);
        assert_eq!(kept(200, true), 4);
        assert_eq!(kept(401, true), 4);
        assert_eq!(Settlement::Charged.kept(Cost::up_to(7), &[], &parts, |_| None).get(), 7);
        assert_eq!(Settlement::Free.kept(Cost::up_to(7), &[], &parts, |_| None).get(), 0);
    }
}
