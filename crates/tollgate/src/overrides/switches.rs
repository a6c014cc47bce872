//! Overrides that turn a rule or load shedding off or to shadow mode at once. In this module, such
//! an override is called a switch.

use std::sync::Arc;

use tollgate_core::Timestamp;
use tollgate_core::policy::shedding::ShedMode;
use tollgate_core::policy::{Rule, RuleSwitch};

use super::index::Overrides;
use super::{Effect, Override, OverrideTarget, SheddingTarget};

impl Overrides {
    /// Returns the override of the rule `name` that is in force at `now`.
    #[must_use]
    pub fn rule_switch(&self, name: &str, now: Timestamp) -> Option<Arc<Override>> {
        self.switch(now, |target| matches!(target, OverrideTarget::Rule(rule) if **rule == *name))
    }

    /// Returns the override that turns the part `target` of load shedding off or to shadow mode and
    /// is in force at `now`.
    #[must_use]
    pub fn shedding_switch(&self, target: SheddingTarget, now: Timestamp) -> Option<Arc<Override>> {
        self.switch(now, |candidate| *candidate == OverrideTarget::Shedding(target))
    }

    /// Returns whether an override in force at `now` turns `rule` off or makes it only count.
    /// Without such an override, the rule is on.
    pub(crate) fn switched(&self, rule: &Rule, now: Timestamp) -> RuleSwitch {
        self.rule_switch(&rule.name, now).map_or(RuleSwitch::On, |definition| {
            match definition.effect {
                Effect::Unlimited => RuleSwitch::Off,
                Effect::Counted => RuleSwitch::Counted,
                // An override of a rule never sets a quota and never blocks.
                Effect::Quota { .. } | Effect::Blocked => RuleSwitch::On,
            }
        })
    }

    /// Returns the mode that the overrides of `target` and of [`SheddingTarget::All`] set at `now`.
    /// If both set a mode, the mode that sheds less applies.
    pub(crate) fn shed_mode(&self, target: SheddingTarget, now: Timestamp) -> ShedMode {
        let of = |target| {
            self.shedding_switch(target, now)
                .map_or(ShedMode::Enforce, |definition| mode(&definition))
        };
        of(target).max(of(SheddingTarget::All))
    }
}

fn mode(definition: &Override) -> ShedMode {
    match definition.effect {
        Effect::Unlimited => ShedMode::Off,
        Effect::Counted => ShedMode::Shadow,
        Effect::Quota { .. } | Effect::Blocked => ShedMode::Enforce,
    }
}
