//! What one request will be charged.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use super::matching::{Matched, Mismatch};
use super::metered::{Estimate, MeteredLimit};
use super::path::NormalPath;
use super::subject::subject;
use super::{
    Ambiguity, AmbiguousPaths, ChargeOn, LimitRef, MatchMode, OnFailure, Policy, Priority, Queue,
    Rule, RuleMode,
};
use crate::attributes::RequestAttributes;
use crate::cost::Cost;
use crate::key::{KeyedHash, Subject};
use crate::limit::Limit;

/// One limit, for one subject, at one cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCharge {
    /// The limit.
    pub limit: Arc<Limit>,
    /// Who is limited.
    pub subject: Subject,
    /// What it costs, with what is reserved of it.
    pub cost: Cost,
    /// What of the cost is reserved until the answer tells.
    pub estimates: Vec<Estimate>,
}

impl PlannedCharge {
    /// A charge whose cost is known.
    #[must_use]
    pub const fn new(limit: Arc<Limit>, subject: Subject, cost: Cost) -> Self {
        Self { limit, subject, cost, estimates: Vec::new() }
    }

    /// Adds `other`, which is on the same limit and subject.
    fn join(&mut self, other: Self) {
        self.cost = self.cost.plus(other.cost);
        self.estimates.extend(other.estimates);
    }
}

/// What one request will be charged: at most one charge a limit and subject.
#[derive(Clone, Debug, Default)]
pub struct Plan<'p> {
    /// The rules that matched.
    pub rules: Vec<&'p Rule>,
    /// What decides whether it passes, all or nothing.
    pub enforced: Vec<PlannedCharge>,
    /// What is counted and judged beside it, all or nothing, and stops nobody.
    pub shadowed: Vec<PlannedCharge>,
    /// How much the request matters when some are shed: the highest word of its rules, or its
    /// method's.
    pub priority: Priority,
    /// The names of those rules that matched and that a switch keeps from refusing.
    pub unenforced: Vec<Arc<str>>,
    /// Why services might read the request differently from this plan, if they might. Whoever holds
    /// the request should refuse it with 400: the charges here count its path by its decoded
    /// segments, and a subject that can be read in different ways as absent.
    pub ambiguity: Option<Ambiguity>,
}

/// What was said of a rule in the place of its policy's word, for a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleSwitch {
    /// Nothing: the policy's word counts.
    #[default]
    On,
    /// It counts and judges as in shadow mode.
    Counted,
    /// It matches requests as before, and asks none of its limits.
    Off,
}

impl Plan<'_> {
    /// When what is enforced is charged: on completion only if every rule says so.
    #[must_use]
    pub fn charge(&self) -> ChargeOn {
        self.enforcing().map(|rule| rule.charge).max().unwrap_or_default()
    }

    /// What becomes of the request while the store has no answer: the strictest rule's word.
    #[must_use]
    pub fn on_failure(&self) -> OnFailure {
        self.enforcing().map(|rule| rule.on_failure).max().unwrap_or_default()
    }

    /// How long the request waits for a place in flight: as the first of its rules says that
    /// speaks of it.
    #[must_use]
    pub fn queue(&self) -> Option<Queue> {
        self.enforcing().find_map(|rule| rule.queue)
    }

    fn enforcing(&self) -> impl Iterator<Item = &Rule> {
        let refuses =
            |rule: &&Rule| rule.mode == RuleMode::Enforce && !self.unenforced.contains(&rule.name);
        self.rules.iter().copied().filter(refuses)
    }
}

impl Policy {
    /// Which rules `attributes` meet, and what they are charged.
    #[must_use]
    pub fn plan(&self, attributes: &RequestAttributes<'_>, key: &dyn KeyedHash) -> Plan<'_> {
        self.plan_switched(attributes, key, |_| RuleSwitch::On)
    }

    /// As [`plan`](Self::plan), by what `switch` says of each rule that matches.
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
        for rule in &self.rules {
            let Ok(matched) = self.matched(rule, attributes, &path, &ambiguity) else { continue };
            plan.rules.push(rule);
            let switch = switch(rule);
            if switch != RuleSwitch::On {
                plan.unenforced.push(Arc::clone(&rule.name));
            }
            let asked = if switch == RuleSwitch::Off { &[][..] } else { &rule.limits };
            for used in asked {
                let mut planned = self.planned(used, attributes, &matched, key);
                let is_it = |metered: &&MeteredLimit| metered.limit == used.limit;
                if let Some(metered) = rule.metered.iter().find(is_it) {
                    let estimate = metered.estimate(attributes, used.cost);
                    planned.cost = estimate.reserved;
                    planned.estimates.push(estimate);
                }
                match (rule.mode, switch) {
                    (RuleMode::Enforce, RuleSwitch::On) => add(&mut plan.enforced, planned),
                    _ => add(&mut plan.shadowed, planned),
                }
            }
            if self.match_mode == MatchMode::FirstMatch {
                break;
            }
        }
        let said = plan.rules.iter().filter_map(|rule| rule.priority).max();
        plan.priority = said.unwrap_or_else(|| Priority::of_method(attributes.method));
        plan.ambiguity = ambiguity.get();
        plan
    }

    /// Why a request with this path is refused, if it is.
    fn ambiguity_of(&self, path: &NormalPath<'_>) -> Option<Ambiguity> {
        match self.paths.ambiguous {
            AmbiguousPaths::Refuse => path.ambiguity(),
            AmbiguousPaths::Pass => None,
        }
    }

    /// The first condition of `rule` that `attributes` do not meet, or `None` if it matches.
    #[must_use]
    pub fn first_mismatch(
        &self,
        rule: &Rule,
        attributes: &RequestAttributes<'_>,
    ) -> Option<Mismatch> {
        let path = NormalPath::with_options(attributes.path, self.paths);
        self.matched(rule, attributes, &path, &Cell::new(None)).err()
    }

    /// Every visible limit that `attributes`' caller can meet at any path, one for each resource, at no
    /// cost: of several the one whose rule comes first.
    #[must_use]
    pub fn status_plan(
        &self,
        attributes: &RequestAttributes<'_>,
        key: &dyn KeyedHash,
    ) -> Vec<PlannedCharge> {
        self.status_plan_switched(attributes, key, |_| RuleSwitch::On)
    }

    /// As [`status_plan`](Self::status_plan), by what `switch` says of each rule that refuses:
    /// one that a switch keeps from refusing tells of no limit.
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
            if self.check_caller(rule, attributes, &matched).is_err() {
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

    fn matched<'a>(
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
        self.check_caller(rule, attributes, &matched)?;
        Ok(matched)
    }

    fn check_caller(
        &self,
        rule: &Rule,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
    ) -> Result<(), Mismatch> {
        rule.matches.check_caller(attributes)?;
        let has = |index: &usize| {
            self.dimensions[*index].source.is_present(&self.forwarding, attributes, matched)
        };
        if let Some(index) = rule.matches.has.iter().find(|index| !has(index)) {
            return Err(Mismatch::Has(*index));
        }
        match rule.matches.lacks.iter().find(|index| has(index)) {
            Some(index) => Err(Mismatch::Lacks(*index)),
            None => Ok(()),
        }
    }

    fn planned(
        &self,
        used: &LimitRef,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
        key: &dyn KeyedHash,
    ) -> PlannedCharge {
        let binding = &self.limits[used.limit];
        let per = binding.per.iter().filter_map(|index| self.dimensions.get(*index));
        let subject = subject(per, &self.forwarding, attributes, matched, key);
        PlannedCharge::new(Arc::clone(&binding.limit), subject, used.cost)
    }
}

/// Adds a charge; one on the same limit and subject costs what both cost.
pub(super) fn add(plan: &mut Vec<PlannedCharge>, planned: PlannedCharge) {
    let same = |old: &&mut PlannedCharge| {
        Arc::ptr_eq(&old.limit, &planned.limit) && old.subject == planned.subject
    };
    match plan.iter_mut().find(same) {
        Some(old) => old.join(planned),
        None => plan.push(planned),
    }
}
