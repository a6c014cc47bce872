//! The plan: the charges of one request.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use super::conditions::Scope;
use super::matching::{Matched, Mismatch};
use super::metered::{Estimate, MeteredLimit, Spare};
use super::outcome::{ConditionalCost, refund_for};
use super::path::NormalPath;
use super::response_terms::ResponseTerms;
use super::subject::subject;
use super::{
    Ambiguity, AmbiguousPaths, ChargeOn, LimitRef, MatchMode, OnFailure, Policy, Priority, Queue,
    Rule, RuleMode,
};
use crate::attributes::RequestAttributes;
use crate::charge::{Charge, Operation};
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::key::{KeyedHash, Subject};
use crate::limit::Limit;

/// A charge on one limit for one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCharge {
    /// The limit that is charged.
    pub limit: Arc<Limit>,
    /// The subject that is charged.
    pub subject: Subject,
    /// The cost. It includes the units that are reserved.
    pub cost: Cost,
    /// The parts of the cost that are estimates: units that are reserved until the response
    /// determines the actual cost.
    pub estimates: Vec<Estimate>,
    /// The parts of the cost that stay charged or are refunded depending on the status of the
    /// response, each with its own statuses.
    pub conditions: Vec<ConditionalCost>,
}

impl PlannedCharge {
    /// Creates a charge with a known cost.
    #[must_use]
    pub fn new(limit: Arc<Limit>, subject: Subject, cost: Cost) -> Self {
        let mut conditions = Vec::new();
        if let (Some(counted), false) = (limit.counted(), cost == Cost::PEEK) {
            let counted = Some(Arc::clone(counted));
            let terms = ResponseTerms { counted, refund: None };
            conditions.push(ConditionalCost { cost, terms });
        }
        Self { limit, subject, cost, estimates: Vec::new(), conditions }
    }

    /// Returns the operation that makes this charge when the request arrives, under the charge id
    /// `id`.
    #[must_use]
    pub fn charge(&self, id: ChargeId) -> Charge<'_> {
        let Self { limit, subject, cost, .. } = self;
        Charge { limit, subject, operation: Operation::Charge { cost: *cost, id } }
    }

    /// Returns whether the status of the response can refund a part of the charge.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        let has_terms = |estimate: &Estimate| estimate.terms != ResponseTerms::default();
        !self.conditions.is_empty() || self.estimates.iter().any(has_terms)
    }

    /// Returns whether the limit of the charge counts only responses with some statuses.
    #[must_use]
    pub fn counts_statuses(&self) -> bool {
        let terms = self.conditions.iter().map(|part| &part.terms);
        let terms = terms.chain(self.estimates.iter().map(|estimate| &estimate.terms));
        terms.into_iter().any(|terms| terms.counted.is_some())
    }

    /// Adds the cost, the estimates and the conditions of `other`, a charge on the same limit and
    /// subject.
    fn join(&mut self, other: Self) {
        self.cost = self.cost.plus(other.cost);
        self.estimates.extend(other.estimates);
        self.conditions.extend(other.conditions);
    }
}

/// The charges of one request, with at most one charge for each pair of a limit and a subject.
#[derive(Clone, Debug, Default)]
pub struct Plan<'p> {
    /// The rules that matched.
    pub rules: Vec<&'p Rule>,
    /// The charges that decide whether the request is admitted. Either all of them are counted or
    /// none.
    pub enforced: Vec<PlannedCharge>,
    /// The charges of shadow rules. A separate store call counts either all of these charges or
    /// none. They never refuse a request.
    pub shadowed: Vec<PlannedCharge>,
    /// The priority for load shedding: the highest priority of the matching rules, or the priority
    /// of the method if no rule has one.
    pub priority: Priority,
    /// The names of the matching rules that refuse nothing because an administrator
    /// [switched](RuleSwitch) them.
    pub overridden_rules: Vec<Arc<str>>,
    /// The reason why a service might interpret the request differently from this plan. The caller
    /// should refuse such a request with 400. The plan uses the decoded segments of the path and
    /// treats an ambiguous subject as absent.
    pub ambiguity: Option<Ambiguity>,
}

/// A temporary override of a rule's mode by an administrator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleSwitch {
    /// No override: the policy's mode applies.
    #[default]
    On,
    /// As in shadow mode, the rule counts and evaluates requests and never refuses.
    Counted,
    /// The rule is switched off: it still matches requests, but charges none of its limits.
    Off,
}

impl Plan<'_> {
    /// Returns the time at which the enforced charges are made. The charges are made on completion
    /// only if every enforcing rule charges on completion.
    #[must_use]
    pub fn charge(&self) -> ChargeOn {
        self.enforcing().map(|rule| rule.charge).max().unwrap_or_default()
    }

    /// Returns the fallback while the store does not answer: the strictest fallback of the
    /// enforcing rules.
    #[must_use]
    pub fn on_failure(&self) -> OnFailure {
        self.enforcing().map(|rule| rule.on_failure).max().unwrap_or_default()
    }

    /// Returns the settings of the queue in which requests wait for a permit: those of the first
    /// enforcing rule that has a queue. Returns `None` if none has a queue.
    #[must_use]
    pub fn queue(&self) -> Option<Queue> {
        self.enforcing().find_map(|rule| rule.queue)
    }

    fn enforcing(&self) -> impl Iterator<Item = &Rule> {
        let refuses = |rule: &&Rule| {
            rule.mode == RuleMode::Enforce && !self.overridden_rules.contains(&rule.name)
        };
        self.rules.iter().copied().filter(refuses)
    }
}

impl Policy {
    /// Returns the rules that match `attributes` and their charges.
    #[must_use]
    pub fn plan(&self, attributes: &RequestAttributes<'_>, key: &dyn KeyedHash) -> Plan<'_> {
        self.plan_switched(attributes, key, |_| RuleSwitch::On)
    }

    /// Returns the plan that [`plan`](Self::plan) returns, with the overrides that `switch` returns
    /// for the matching rules.
    #[must_use]
    pub fn plan_switched(
        &self,
        attributes: &RequestAttributes<'_>,
        key: &dyn KeyedHash,
        switch: impl Fn(&Rule) -> RuleSwitch,
    ) -> Plan<'_> {
        let path = NormalPath::with_options(attributes.path, self.paths);
        let ambiguity = Cell::new(self.ambiguity_of(&path));
        let mut plan = Plan::default();
        for index in self.index.candidates(attributes.method, &path) {
            let rule = &self.rules[index];
            let noted = Cell::new(None);
            let matched = self.matched(rule, attributes, &path, &noted);
            let switch = if matched.is_ok() { switch(rule) } else { RuleSwitch::On };
            let Ok(matched) = matched else {
                note_enforced(&ambiguity, &noted, rule, switch);
                continue;
            };
            plan.rules.push(rule);
            if switch != RuleSwitch::On {
                plan.overridden_rules.push(Arc::clone(&rule.name));
            }
            let limit_refs = if switch == RuleSwitch::Off { &[][..] } else { &rule.limits };
            let planned = match (rule.mode, switch) {
                (RuleMode::Enforce, RuleSwitch::On) => &mut plan.enforced,
                _ => &mut plan.shadowed,
            };
            self.add_charges(
                rule,
                limit_refs,
                (attributes, &matched, key),
                planned,
                &mut Spare::default(),
            );
            note_enforced(&ambiguity, &noted, rule, switch);
            if self.match_mode == MatchMode::FirstMatch {
                break;
            }
        }
        let highest = plan.rules.iter().filter_map(|rule| rule.priority).max();
        plan.priority = highest.unwrap_or_else(|| Priority::of_method(attributes.method));
        plan.ambiguity = ambiguity.get();
        plan
    }

    /// Adds a charge on each limit in `limit_refs` to `planned`. `limit_refs` are limits of `rule`.
    /// `spare` provides empty lists for the estimates.
    pub(super) fn add_charges(
        &self,
        rule: &Rule,
        limit_refs: &[LimitRef],
        (attributes, matched, key): (&RequestAttributes<'_>, &Matched<'_>, &dyn KeyedHash),
        planned: &mut Vec<PlannedCharge>,
        spare: &mut Spare,
    ) {
        planned.reserve_exact(limit_refs.len());
        let mut shared: Option<Subject> = None;
        for (index, used) in limit_refs.iter().enumerate() {
            let subject = shared.take();
            let subject =
                subject.unwrap_or_else(|| self.subject_of(used, attributes, matched, key));
            // The next limit of the rule usually counts the same subject, and then uses a clone of
            // it.
            let per = |used: &LimitRef| &self.limits[used.limit].per;
            if limit_refs.get(index + 1).is_some_and(|next| per(next) == per(used)) {
                shared = Some(subject.clone());
            }
            let mut charge = self.charge_of(used, subject, attributes, matched);
            if let Some(refund) = &rule.refund {
                refund_for(&mut charge.conditions, charge.cost, refund);
            }
            let is_it = |metered: &&MeteredLimit| metered.limit == used.limit;
            if let Some(metered) = rule.metered.iter().find(is_it) {
                let mut estimate = metered.estimate(attributes, used.cost);
                estimate.terms = charge.conditions.pop().map(|part| part.terms).unwrap_or_default();
                charge.cost = estimate.reserved;
                charge.estimates = spare.take();
                charge.estimates.push(estimate);
            }
            if self.selects_limits() {
                use_first_quota(planned, &mut charge);
            }
            add(planned, charge);
        }
    }

    /// Returns the reason why a request with this path is ambiguous, if the policy refuses
    /// ambiguous paths.
    pub(super) fn ambiguity_of(&self, path: &NormalPath<'_>) -> Option<Ambiguity> {
        match self.paths.ambiguous {
            AmbiguousPaths::Refuse => path.ambiguity(),
            AmbiguousPaths::Pass => None,
        }
    }

    /// Returns the first condition of `rule` that a request with `attributes` does not meet.
    /// Returns `None` if the rule matches the request.
    #[must_use]
    pub fn first_mismatch(
        &self,
        rule: &Rule,
        attributes: &RequestAttributes<'_>,
    ) -> Option<Mismatch> {
        let path = NormalPath::with_options(attributes.path, self.paths);
        self.matched(rule, attributes, &path, &Cell::new(None)).err()
    }

    /// Returns a peek for every visible limit on which requests of a client can be charged,
    /// whatever the path of the request. `attributes` identify the client. If several limits have
    /// the same [resource](Limit::resource), the result contains only the limit of the earliest
    /// rule.
    #[must_use]
    pub fn status_plan(
        &self,
        attributes: &RequestAttributes<'_>,
        key: &dyn KeyedHash,
    ) -> Vec<PlannedCharge> {
        self.status_plan_switched(attributes, key, |_| RuleSwitch::On)
    }

    /// Returns the plan that [`status_plan`](Self::status_plan) returns, without the limits of some
    /// rules. For each enforcing rule, `switch` returns the override. The limits of a rule that is
    /// switched off or only counts are left out.
    #[must_use]
    pub fn status_plan_switched(
        &self,
        attributes: &RequestAttributes<'_>,
        key: &dyn KeyedHash,
        switch: impl Fn(&Rule) -> RuleSwitch,
    ) -> Vec<PlannedCharge> {
        let path = NormalPath::with_options(attributes.path, self.paths);
        let ambiguity = Cell::new(None);
        let mut planned: Vec<PlannedCharge> = Vec::new();
        let refuses =
            |rule: &&Rule| rule.mode == RuleMode::Enforce && switch(rule) == RuleSwitch::On;
        for rule in self.rules.iter().filter(refuses) {
            let matched =
                Matched { rule: &rule.name, pattern: None, path: &path, ambiguity: &ambiguity };
            let conditions = &rule.matches;
            if self.check_conditions(conditions, attributes, &matched, Scope::Caller).is_err() {
                continue;
            }
            for used in &rule.limits {
                let found = &self.limits[used.limit].limit;
                let visible = found.visibility() == crate::limit::Visibility::Visible;
                let is_new = planned.iter().all(|old| old.limit.resource() != found.resource());
                if visible && is_new {
                    let used = LimitRef { cost: Cost::PEEK, ..*used };
                    planned.push(self.planned(&used, attributes, &matched, key));
                }
            }
        }
        planned
    }

    pub(super) fn matched<'a>(
        &self,
        rule: &'a Rule,
        attributes: &RequestAttributes<'_>,
        path: &'a NormalPath<'a>,
        ambiguity: &'a Cell<Option<Ambiguity>>,
    ) -> Result<Matched<'a>, Mismatch> {
        let pattern = rule.matches.pattern(path).ok_or(Mismatch::Path)?;
        let matched = Matched { rule: &rule.name, pattern, path, ambiguity };
        if !rule.matches.matches_method(attributes.method) {
            return Err(Mismatch::Method);
        }
        rule.matches.check_query(attributes)?;
        self.check_conditions(&rule.matches, attributes, &matched, Scope::Request)?;
        Ok(matched)
    }

    fn planned(
        &self,
        used: &LimitRef,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
        key: &dyn KeyedHash,
    ) -> PlannedCharge {
        let subject = self.subject_of(used, attributes, matched, key);
        self.charge_of(used, subject, attributes, matched)
    }

    pub(super) fn subject_of(
        &self,
        used: &LimitRef,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
        key: &dyn KeyedHash,
    ) -> Subject {
        let per = &self.limits[used.limit].per;
        let per = per.iter().filter_map(|index| self.dimensions.get(*index));
        subject(per, &self.forwarding, attributes, matched, key)
    }

    fn charge_of(
        &self,
        used: &LimitRef,
        subject: Subject,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
    ) -> PlannedCharge {
        let limit = self.limit_for(used.limit, attributes, matched);
        PlannedCharge::new(limit, subject, used.cost)
    }
}

/// Copies the ambiguity that a rule found, `noted`, to `ambiguity`, the ambiguity of the plan,
/// unless an earlier rule already found one. The ambiguities of shadow rules, and of rules that an
/// administrator switched, are ignored.
fn note_enforced(
    ambiguity: &Cell<Option<Ambiguity>>,
    noted: &Cell<Option<Ambiguity>>,
    rule: &Rule,
    switch: RuleSwitch,
) {
    if rule.mode == RuleMode::Enforce && switch == RuleSwitch::On {
        ambiguity.set(ambiguity.get().or_else(|| noted.get()));
    }
}

/// Adds a charge to a plan. If the plan already has a charge on the same limit and subject, the
/// cost is added to that charge.
pub(super) fn add(plan: &mut Vec<PlannedCharge>, planned: PlannedCharge) {
    let same = |old: &&mut PlannedCharge| {
        Arc::ptr_eq(&old.limit, &planned.limit) && old.subject == planned.subject
    };
    match plan.iter_mut().find(same) {
        Some(old) => old.join(planned),
        None => plan.push(planned),
    }
}

/// Replaces the limit of `charge` by the limit of an earlier charge in `planned` on the same
/// counter, if there is one. Both charges then have the same quota and the same windows, because a
/// counter has only one quota and one open window in one request.
pub(super) fn use_first_quota(planned: &[PlannedCharge], charge: &mut PlannedCharge) {
    let is_same = |old: &&PlannedCharge| {
        old.limit.state_digest() == charge.limit.state_digest() && old.subject == charge.subject
    };
    if let Some(first) = planned.iter().find(is_same) {
        charge.limit = Arc::clone(&first.limit);
    }
}
