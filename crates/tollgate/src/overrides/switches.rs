//! Switches of rules and of load shedding: for who has to stop them at once.

use std::sync::Arc;

use tollgate_core::Timestamp;
use tollgate_core::policy::shedding::ShedMode;
use tollgate_core::policy::{Rule, RuleSwitch};

use super::index::Overrides;
use super::{Effect, Override, OverrideTarget, SheddingTarget};

impl Overrides {
    /// What is said of the rule of this name at `now`.
    #[must_use]
    pub fn rule_switch(&self, name: &str, now: Timestamp) -> Option<Arc<Override>> {
        self.switch(now, |target| matches!(target, OverrideTarget::Rule(rule) if **rule == *name))
    }

    /// What is said of `target` at `now`.
    #[must_use]
    pub fn shedding_switch(&self, target: SheddingTarget, now: Timestamp) -> Option<Arc<Override>> {
        self.switch(now, |candidate| *candidate == OverrideTarget::Shedding(target))
    }

    /// What becomes of `rule` at `now`.
    pub(crate) fn switched(&self, rule: &Rule, now: Timestamp) -> RuleSwitch {
        self.rule_switch(&rule.name, now).map_or(RuleSwitch::On, |said| match said.effect {
            Effect::Unlimited => RuleSwitch::Off,
            Effect::Counted => RuleSwitch::Counted,
            // Of a rule nobody says so.
            Effect::Quota { .. } | Effect::Blocked => RuleSwitch::On,
        })
    }

    /// How far `target` is unenforced at `now`, by itself or with all others.
    pub(crate) fn shed_mode(&self, target: SheddingTarget, now: Timestamp) -> ShedMode {
        let of = |target| {
            self.shedding_switch(target, now).map_or(ShedMode::Enforce, |said| mode(&said))
        };
        of(target).max(of(SheddingTarget::All))
    }
}

fn mode(said: &Override) -> ShedMode {
    match said.effect {
        Effect::Unlimited => ShedMode::Off,
        Effect::Counted => ShedMode::Shadow,
        Effect::Quota { .. } | Effect::Blocked => ShedMode::Enforce,
    }
}
