//! `/v1/standing?limit=core&subject[token]=abc`: `GET` tells how it stands, `DELETE` forgets it.

use serde_json::{Value, json};
use tollgate::core::policy::{NameError, Named, NamedPlan, Planned};
use tollgate::core::{Cost, Policy, Store, Timestamp};

use super::answer::source_of;
use super::app::App;
use super::audit::{Caller, Deed};
use super::check::names_nothing;
use super::gate::Eyes;
use super::json;
use super::problem::{Kind, Problem};
use super::query::{invalid, parameters};
use super::respond::Answer;
use super::shown::{ShownSubject, Sight};
use super::wire::{MAX_LIMITS, OverrideShown, Source, StandingAnswer};

/// Whose standing is asked: limits, and values for what they count by.
struct Whose {
    limits: Vec<String>,
    subject: Vec<(String, Option<String>)>,
}

impl<S: Store> App<S> {
    /// How limits stand; nothing is charged.
    pub(super) async fn standing(&self, query: &str, eyes: Eyes) -> Answer {
        let policy = self.limiter.policy();
        let NamedPlan { planned, .. } = self.named_by(&policy, &Whose::read(query)?)?;
        let now = self.limiter.now();
        let (verdict, source) = self.limiter.look_at(now, &planned).await?;
        let ((source, _), policy) = (source_of(source), &**policy.version());
        let overrides = match eyes {
            Eyes::Administrators => self.overrides_of(&planned, now),
            Eyes::Callers => Vec::new(),
        };
        let standings = &verdict.standings;
        Ok(json::write(&StandingAnswer { source, policy, standings, overrides })?)
    }

    fn overrides_of(&self, planned: &[Planned], now: Timestamp) -> Vec<OverrideShown> {
        let (overrides, key) = (self.limiter.overrides(), self.limiter.key());
        let found = planned.iter().filter_map(|Planned { limit, subject, .. }| {
            let found = overrides.find(limit, subject, key, now)?;
            // Which limit it is about here, also where it is about others too.
            let limit = Some(limit.name().into());
            Some(OverrideShown { limit, ..self.shown_override(&found) })
        });
        found.collect()
    }

    /// Forgets what a subject used, and tells how it stands then. The log keeps who was forgotten:
    /// in clear where the limit reveals its subjects, else by keyed hashes.
    pub(super) async fn forget(&self, query: &str, caller: &Caller) -> Answer {
        let policy = self.limiter.policy();
        let NamedPlan { planned, .. } = self.named_by(&policy, &Whose::read(query)?)?;
        let verdict = self.limiter.forget_at(self.limiter.now(), &planned).await?;
        for Planned { limit, subject, .. } in &planned {
            let shown = |sight| json!(ShownSubject::of(subject, sight, self.limiter.key()));
            let seen = shown(self.options.sight_of(limit.name()));
            let limit_name = limit.name();
            tracing::info!(limit = limit_name, subject = %seen, "an administrator forgot what was used");
            let shown = shown(Sight::Veiled);
            let target = json!({ "limit": limit.name(), "subject": shown });
            let (what, before, after) = ("standing forgotten", Value::Null, Value::Null);
            self.note(caller, Deed { what, target, before, after });
        }
        let (source, policy) = (Source::Store, &**policy.version());
        let (standings, overrides) = (&verdict.standings, Vec::new());
        Ok(json::write(&StandingAnswer { source, policy, standings, overrides })?)
    }

    /// Each limit takes of the subject what it counts by; what none counts by is a mistake.
    fn named_by(&self, policy: &Policy, whose: &Whose) -> Result<NamedPlan, Problem> {
        let counts_by = |limit: &str, name: &str| {
            let limit_for = policy.limits().iter().find(|other| other.limit.name() == limit);
            let per = limit_for.into_iter().flat_map(|limit_for| &limit_for.per);
            per.filter_map(|index| policy.dimensions().get(*index)).any(|one| *one.name == *name)
        };
        let subjects: Vec<Vec<_>> = whose
            .limits
            .iter()
            .map(|limit| {
                let own = whose.subject.iter().filter(|(name, _)| counts_by(limit, name));
                own.map(|(name, value)| (&**name, value.as_deref())).collect()
            })
            .collect();
        let named = whose.limits.iter().zip(&subjects);
        let named = named.map(|(limit, subject)| Named { limit, cost: Cost::PEEK, subject });
        let told = |(_, error)| names_nothing(policy, &error);
        let plan = policy.plan_named(named, self.limiter.key()).map_err(told)?;
        let is_used = |name: &str| whose.limits.iter().any(|limit| counts_by(limit, name));
        match whose.subject.iter().find(|(name, _)| !is_used(name)) {
            Some((name, _)) => {
                Err(names_nothing(policy, &NameError::Dimension(name.as_str().into())))
            }
            None => Ok(plan),
        }
    }
}

impl Whose {
    fn read(query: &str) -> Result<Self, Problem> {
        let mut whose = Self { limits: Vec::new(), subject: Vec::new() };
        for (name, value) in parameters(query)? {
            let dimension = name.strip_prefix("subject[").and_then(|rest| rest.strip_suffix(']'));
            match (&*name, dimension, value) {
                ("limit", _, Some(limit)) => whose.limits.push(limit),
                (_, Some(dimension), value) => whose.subject.push((dimension.to_owned(), value)),
                _ => {
                    let known = "`limit=NAME` and `subject[NAME]=VALUE`";
                    return Err(invalid(format!("unknown parameter {name:?}: there are {known}")));
                }
            }
        }
        if !(1..=MAX_LIMITS).contains(&whose.limits.len()) {
            return Err(invalid(format!("name 1 to {MAX_LIMITS} limits: `limit=NAME`")));
        }
        let repeated = |index: usize| {
            let (name, _) = &whose.subject[index];
            whose.subject[..index].iter().any(|(other, _)| other == name)
        };
        match (0..whose.subject.len()).find(|index| repeated(*index)) {
            Some(index) => {
                let (name, _) = &whose.subject[index];
                let detail = format!("{name:?} is given twice");
                Err(Problem::new(Kind::InvalidQuery, detail))
            }
            None => Ok(whose),
        }
    }
}
