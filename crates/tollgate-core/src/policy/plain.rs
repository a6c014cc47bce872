//! Plans of simple requests, which have only charges that decide the request. The plan of the next
//! request reuses the memory of these charges.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use super::matching::Matched;
use super::metered::Spare;
use super::path::NormalPath;
use super::plan::PlannedCharge;
use super::response_terms::ResponseTerms;
use super::{ChargeOn, LimitRef, MatchMode, Policy, Rule, RuleMode};
use crate::attributes::RequestAttributes;
use crate::cost::Cost;
use crate::key::{KeyedHash, Subject};

/// The charges of one request. The plan of the next request can reuse their memory.
#[derive(Clone, Debug, Default)]
pub struct PlainPlan {
    planned: Vec<PlannedCharge>,
    spare: Spare,
}

impl PlainPlan {
    /// Returns the charges that decide whether the request is admitted. Either all of them are
    /// counted or none.
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
    /// Plans the same charges as [`plan`](Self::plan) into `plain`, if the request is simple.
    /// Returns false for other requests. The charges in `plain` then have no meaning.
    ///
    /// A request is simple if all of these hold: at most one rule decides, the rule enforces its
    /// limits and charges on arrival, each of its limits is enforced for all subjects and has no
    /// candidate, and nothing in the request is ambiguous.
    ///
    /// Allocates nothing if `plain` has already planned a request with at least as many limits.
    #[must_use]
    pub fn plan_plain(
        &self,
        attributes: &RequestAttributes<'_>,
        key: &dyn KeyedHash,
        plain: &mut PlainPlan,
    ) -> bool {
        if self.match_mode != MatchMode::FirstMatch {
            plain.clear();
            return false;
        }
        let path = NormalPath::with_options(attributes.path, self.paths);
        let noted = Cell::new(self.ambiguity_of(&path));
        let matching = |index: usize| {
            let rule = &self.rules[index];
            Some((rule, self.matched(rule, attributes, &path, &noted).ok()?))
        };
        let mut candidates = self.index.candidates(attributes.method, &path);
        let Some((rule, matched)) = candidates.find_map(matching) else {
            plain.clear();
            return noted.get().is_none();
        };
        if rule.mode != RuleMode::Enforce || rule.charge != ChargeOn::Arrival {
            plain.clear();
            return false;
        }
        let request = (attributes, &matched, key);
        if !self.renew_charges(rule, request, &mut plain.planned) {
            plain.clear();
            let PlainPlan { planned, spare } = plain;
            self.add_charges(rule, &rule.limits, request, planned, spare);
        }
        let is_plain = |planned: &PlannedCharge| planned.limit.is_enforced_alone();
        noted.get().is_none() && plain.planned.iter().all(is_plain)
    }

    /// Replaces the subjects in `planned` by the subjects of this request. The function returns
    /// true if `planned` contains the charges of `rule`, and if nothing except the subjects of
    /// these charges depends on the request. Otherwise it returns false, and the content of
    /// `planned` has no meaning.
    ///
    /// Most requests of a thread are decided by a few rules. Changing an existing charge takes less
    /// time than creating a new one.
    fn renew_charges(
        &self,
        rule: &Rule,
        (attributes, matched, key): (&RequestAttributes<'_>, &Matched<'_>, &dyn KeyedHash),
        planned: &mut [PlannedCharge],
    ) -> bool {
        let has_variants =
            self.tenants.is_some() || !self.quotas.is_empty() || !self.windows.is_empty();
        let is_of_rule = |(used, planned)| self.is_charge_of(rule, used, planned);
        if has_variants
            || rule.refund.is_some()
            || planned.len() != rule.limits.len()
            || !rule.limits.iter().zip(&*planned).all(is_of_rule)
        {
            return false;
        }
        let mut rest = planned;
        let mut before: Option<(&LimitRef, &Subject)> = None;
        for used in &rule.limits {
            let Some((charge, after)) = rest.split_first_mut() else { break };
            let per = |used: &LimitRef| &self.limits[used.limit].per;
            match before {
                Some((other, subject)) if per(other) == per(used) => {
                    charge.subject.clone_from(subject);
                }
                _ => charge.subject = self.subject_of(used, attributes, matched, key),
            }
            before = Some((used, &charge.subject));
            rest = after;
        }
        true
    }

    /// Returns whether `planned` is a charge on the limit `used` of `rule`, and its cost does not
    /// depend on the request. `planned` can have the subject of another request.
    fn is_charge_of(&self, rule: &Rule, used: &LimitRef, planned: &PlannedCharge) -> bool {
        let limit = &self.limits[used.limit].limit;
        let metered = rule.metered.iter().find(|metered| metered.limit == used.limit);
        let has_cost = match (metered, &*planned.estimates) {
            (None, []) => planned.cost == used.cost,
            (Some(metered), [estimate]) => {
                metered.reserve.is_none()
                    && Arc::ptr_eq(&metered.meter, &estimate.meter)
                    && estimate.terms == ResponseTerms::default()
                    && estimate.reserved == used.cost.max(Cost::ONE)
                    && planned.cost == estimate.reserved
            }
            _ => false,
        };
        has_cost
            && Arc::ptr_eq(limit, &planned.limit)
            && limit.counted().is_none()
            && planned.conditions.is_empty()
    }
}
