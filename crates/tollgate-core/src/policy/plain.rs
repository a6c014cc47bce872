//! Plans for requests that need only charges, in memory that the next plan uses again.

use alloc::vec::Vec;
use core::cell::Cell;

use super::metered::Spare;
use super::path::NormalPath;
use super::plan::PlannedCharge;
use super::{ChargeOn, MatchMode, Policy, RuleMode};
use crate::attributes::RequestAttributes;
use crate::key::KeyedHash;

/// The charges of one request, in memory that the next plan uses again.
#[derive(Clone, Debug, Default)]
pub struct PlainPlan {
    planned: Vec<PlannedCharge>,
    spare: Spare,
}

impl PlainPlan {
    /// Returns the charges that decide whether the request is admitted, all or nothing.
    #[must_use]
    pub fn charges(&self) -> &[PlannedCharge] {
        &self.planned
    }

    fn clear(&mut self) {
        for mut planned in self.planned.drain(..) {
            self.spare.give(core::mem::take(&mut planned.estimates));
        }
    }
}

impl Policy {
    /// Plans the same charges as [`plan`](Self::plan) into `plain`, if these are all that there is
    /// to a request: a single rule decides, enforces its limits and charges on arrival, every limit
    /// is enforced for all subjects and has no candidate, and nothing is ambiguous. Returns false
    /// otherwise; the charges in `plain` are then meaningless.
    ///
    /// Allocates nothing once `plain` has planned a request with as many limits.
    #[must_use]
    pub fn plan_plain(
        &self,
        attributes: &RequestAttributes<'_>,
        key: &dyn KeyedHash,
        plain: &mut PlainPlan,
    ) -> bool {
        plain.clear();
        if self.match_mode != MatchMode::FirstMatch {
            return false;
        }
        let path = NormalPath::with_options(attributes.path, self.paths);
        let noted = Cell::new(self.ambiguity_of(&path));
        for rule in &self.rules {
            let Ok(matched) = self.matched(rule, attributes, &path, &noted) else { continue };
            if rule.mode != RuleMode::Enforce || rule.charge != ChargeOn::Arrival {
                return false;
            }
            let PlainPlan { planned, spare } = plain;
            self.add_charges(rule, &rule.limits, (attributes, &matched, key), planned, spare);
            break;
        }
        let is_plain = |planned: &PlannedCharge| planned.limit.is_enforced_alone();
        noted.get().is_none() && plain.planned.iter().all(is_plain)
    }
}
