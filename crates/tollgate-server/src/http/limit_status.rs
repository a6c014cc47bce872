//! `/v1/standing?limit=core&subject[token]=abc`: `GET` returns the status of limits, `DELETE`
//! resets them.

use serde_json::{Value, json};
use tollgate::model::policy::{LimitBinding, NameError, Named, NamedPlan, PlannedCharge};
use tollgate::model::{Cost, Limit, Policy, Store, Timestamp, Visibility};

use super::answer::source_of;
use super::app::App;
use super::audit::{Actor, AuditEvent};
use super::auth::Caller;
use super::check::unknown_name;
use super::json;
use super::problem::{Kind, Problem};
use super::query::{invalid, parameters};
use super::redaction::{RedactedSubject, Redaction};
use super::respond::Answer;
use super::wire::{MAX_LIMITS, OverrideDetails, Source, SubjectStatusResponse};

/// The limits and the subject values of a status query.
struct StatusQuery {
    limits: Vec<String>,
    subject: Vec<(String, Option<String>)>,
}

impl<S: Store> App<S> {
    /// Returns the status of limits for a subject and charges nothing. If the query names no limit,
    /// the response contains all limits that count by the given subject and nothing else.
    pub(super) async fn limit_status(&self, query: &str, caller: Caller) -> Answer {
        let policy = self.limiter.policy();
        let mut wanted = StatusQuery::read(query)?;
        if wanted.limits.is_empty() {
            wanted.limits = limits_of(&policy, &wanted, caller)?;
        }
        let NamedPlan { planned, .. } = self.named_by(&policy, &wanted)?;
        let now = self.limiter.now();
        let (evaluation, source) = self.limiter.peek_planned(now, &planned).await?;
        let ((source, _), policy) = (source_of(source), &**policy.version());
        let overrides = match caller {
            Caller::Admin => self.overrides_of(&planned, now),
            Caller::Client => Vec::new(),
        };
        let statuses = &evaluation.statuses;
        Ok(json::write(&SubjectStatusResponse { source, policy, statuses, overrides })?)
    }

    fn overrides_of(&self, planned: &[PlannedCharge], now: Timestamp) -> Vec<OverrideDetails> {
        let (overrides, key) = (self.limiter.overrides(), self.limiter.key());
        let found = planned.iter().filter_map(|PlannedCharge { limit, subject, .. }| {
            let found = overrides.find(limit, subject, key, now)?;
            // Each entry contains the name of the limit for which it was found, even if the
            // override applies to several limits.
            let limit = Some(limit.name().into());
            Some(OverrideDetails { limit, ..self.shown_override(&found) })
        });
        found.collect()
    }

    /// Resets the usage of a subject, and returns the status after the reset. The reset is logged
    /// with the subject, which is in clear text if the limit reveals its subjects, and otherwise
    /// consists of keyed hashes.
    pub(super) async fn forget(&self, query: &str, actor: &Actor) -> Answer {
        let policy = self.limiter.policy();
        let wanted = StatusQuery::read(query)?;
        if wanted.limits.is_empty() {
            return Err(invalid(format!("name 1 to {MAX_LIMITS} limits: `limit=NAME`")));
        }
        let NamedPlan { planned, .. } = self.named_by(&policy, &wanted)?;
        let evaluation = self.limiter.forget_at(self.limiter.now(), &planned).await?;
        for PlannedCharge { limit, subject, .. } in &planned {
            let shown =
                |redaction| json!(RedactedSubject::of(subject, redaction, self.limiter.key()));
            let observed = shown(self.options.redaction_of(limit.name()));
            let limit_name = limit.name();
            tracing::info!(limit = limit_name, subject = %observed, "an administrator reset the \
                usage of a subject");
            let shown = shown(Redaction::Hashed);
            let target = json!({ "limit": limit.name(), "subject": shown });
            let (action, before, after) = ("subject reset", Value::Null, Value::Null);
            self.note(actor, AuditEvent { action, target, before, after });
        }
        let (source, policy) = (Source::Store, &**policy.version());
        let (statuses, overrides) = (&evaluation.statuses, Vec::new());
        Ok(json::write(&SubjectStatusResponse { source, policy, statuses, overrides })?)
    }

    /// Plans to read the limits that `wanted` names, each with the subject values that the limit
    /// counts by. Returns an error if `wanted` has a value that none of these limits counts by.
    fn named_by(&self, policy: &Policy, wanted: &StatusQuery) -> Result<NamedPlan, Problem> {
        let counts_by = |limit: &str, name: &str| {
            let binding = policy.limits().iter().find(|other| other.limit.name() == limit);
            binding.is_some_and(|binding| policy.uses_value(binding, name))
        };
        let subjects: Vec<Vec<_>> = wanted
            .limits
            .iter()
            .map(|limit| {
                let own = wanted.subject.iter().filter(|(name, _)| counts_by(limit, name));
                own.map(|(name, value)| (&**name, value.as_deref())).collect()
            })
            .collect();
        let named = wanted.limits.iter().zip(&subjects);
        let named = named.map(|(limit, subject)| Named { limit, cost: Cost::PEEK, subject });
        let message = |(_, error)| unknown_name(policy, &error);
        let plan = policy.plan_named(named, self.limiter.key()).map_err(message)?;
        let is_used = |name: &str| wanted.limits.iter().any(|limit| counts_by(limit, name));
        match wanted.subject.iter().find(|(name, _)| !is_used(name)) {
            Some((name, _)) => {
                Err(unknown_name(policy, &NameError::Dimension(name.as_str().into())))
            }
            None => Ok(plan),
        }
    }
}

/// Returns the names of the limits that count by the given subject and nothing else. Only
/// administrators get the names of hidden limits.
fn limits_of(
    policy: &Policy,
    wanted: &StatusQuery,
    caller: Caller,
) -> Result<Vec<String>, Problem> {
    let is_given = |index: &usize| {
        let dimension = policy.dimensions().get(*index);
        dimension.is_some_and(|one| wanted.subject.iter().any(|(name, _)| *name == *one.name))
    };
    let is_shown = |limit: &Limit| {
        limit.visibility() == Visibility::Visible || matches!(caller, Caller::Admin)
    };
    let counts = |binding: &&LimitBinding| {
        !binding.per.is_empty() && binding.per.iter().all(is_given) && is_shown(&binding.limit)
    };
    let found = policy.limits().iter().filter(counts).take(MAX_LIMITS);
    let names: Vec<String> = found.map(|binding| binding.limit.name().to_owned()).collect();
    if names.is_empty() {
        let detail = "no limit counts by exactly this subject: give `subject[NAME]=VALUE` for each \
                      name in a limit's `per`, or name limits: `limit=NAME`";
        return Err(Problem::new(Kind::InvalidSubject, detail));
    }
    Ok(names)
}

impl StatusQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let mut wanted = Self { limits: Vec::new(), subject: Vec::new() };
        for (name, value) in parameters(query)? {
            let dimension = name.strip_prefix("subject[").and_then(|rest| rest.strip_suffix(']'));
            match (&*name, dimension, value) {
                ("limit", _, Some(limit)) => wanted.limits.push(limit),
                (_, Some(dimension), value) => wanted.subject.push((dimension.to_owned(), value)),
                _ => {
                    let known = "`limit=NAME` and `subject[NAME]=VALUE`";
                    return Err(invalid(format!(
                        "unknown parameter {name:?}: the parameters are {known}"
                    )));
                }
            }
        }
        if wanted.limits.len() > MAX_LIMITS {
            return Err(invalid(format!("name at most {MAX_LIMITS} limits: `limit=NAME`")));
        }
        let repeated = |index: usize| {
            let (name, _) = &wanted.subject[index];
            wanted.subject[..index].iter().any(|(other, _)| other == name)
        };
        match (0..wanted.subject.len()).find(|index| repeated(*index)) {
            Some(index) => {
                let (name, _) = &wanted.subject[index];
                let detail = format!("{name:?} is given twice");
                Err(Problem::new(Kind::InvalidQuery, detail))
            }
            None => Ok(wanted),
        }
    }
}
