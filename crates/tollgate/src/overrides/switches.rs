//! Switches of rules and of load shedding: for who has to stop them at once.

use std::sync::Arc;

use tollgate_core::Timestamp;
use tollgate_core::policy::shedding::ShedMode;
use tollgate_core::policy::{Rule, RuleSwitch};

use super::index::Overrides;
use super::{Effect, Override, Shedder, Whom};

impl Overrides {
    /// What is said of the rule of this name at `now`.
    #[must_use]
    pub fn switch_of_rule(&self, name: &str, now: Timestamp) -> Option<Arc<Override>> {
        self.switch(now, |whom| matches!(whom, Whom::Rule(rule) if **rule == *name))
    }

    /// What is said of `shedder` at `now`.
    #[must_use]
    pub fn switch_of_shedding(&self, shedder: Shedder, now: Timestamp) -> Option<Arc<Override>> {
        self.switch(now, |whom| *whom == Whom::Shedding(shedder))
    }

    /// What becomes of `rule` at `now`.
    pub(crate) fn switched(&self, rule: &Rule, now: Timestamp) -> RuleSwitch {
        self.switch_of_rule(&rule.name, now).map_or(RuleSwitch::On, |said| match said.effect {
            Effect::Unlimited => RuleSwitch::Off,
            Effect::Counted => RuleSwitch::Counted,
            // Of a rule nobody says so.
            Effect::Quota { .. } | Effect::Blocked => RuleSwitch::On,
        })
    }

    /// How far `shedder` is calmed at `now`, by itself or with all others.
    pub(crate) fn calmed(&self, shedder: Shedder, now: Timestamp) -> ShedMode {
        let of = |shedder| {
            self.switch_of_shedding(shedder, now).map_or(ShedMode::Enforce, |said| mode(&said))
        };
        of(shedder).max(of(Shedder::All))
    }
}

fn mode(said: &Override) -> ShedMode {
    match said.effect {
        Effect::Unlimited => ShedMode::Off,
        Effect::Counted => ShedMode::Shadow,
        Effect::Quota { .. } | Effect::Blocked => ShedMode::Enforce,
    }
}
