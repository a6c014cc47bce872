//! `/v1/overrides`: another quota, unlimited or blocked, for some subjects and for a limited time.

use serde_json::{Value, json as value};
use tollgate::model::{Millis, Policy, Store, Timestamp};
use tollgate::overrides::{
    ChangeResult, Effect, MAX_OVERRIDE_DURATION, MAX_REASON, NEVER, Override, OverrideChange,
    OverrideScope, OverrideStorage, OverrideStore, OverrideStoreError, OverrideTable,
    OverrideTarget, SheddingTarget,
};

use super::app::App;
use super::audit::{Actor, AuditEvent};
use super::json;
use super::override_target::{TargetSelector, invalid, past_targets, target};
use super::problem::{Kind, Problem};
use super::query::{self, parameters};
use super::redaction::{RedactedSubject, Redaction};
use super::respond::Answer;
use super::wire::{
    OverrideDetails, OverrideLocation, OverrideRequest, OverrideResponse, OverridesResponse, Units,
};

impl<S: Store> App<S> {
    /// Returns all active overrides.
    pub(super) fn overrides(&self) -> Answer {
        let override_store = self.override_store()?;
        let (table, now) = (override_store.table(), self.limiter.now());
        let (location, failure, local) = match override_store.storage() {
            OverrideStorage::InProcess => (OverrideLocation::Process, None, Vec::new()),
            OverrideStorage::InStore { failure, pending } => {
                (OverrideLocation::Store, failure, pending)
            }
        };
        let lasting = table.overrides().iter().filter(|one| now < one.expires_at);
        let shown = |one: &Override| OverrideDetails {
            pending: local.contains(&one.target).then_some(true),
            ..self.shown_override(one)
        };
        let overrides = lasting.map(|one| shown(one)).collect();
        let (version, pending) = (table.version().changes, local.len() as u64);
        Ok(json::write(&OverridesResponse { location, failure, pending, version, overrides })?)
    }

    /// Sets an override.
    pub(super) async fn set_override(&self, body: &[u8], actor: &Actor) -> Answer {
        let override_store = self.override_store()?;
        let request: OverrideRequest<'_> = json::read(body)?;
        let now = self.limiter.now();
        let one = self.requested(&request, now)?;
        let shown = self.shown_override(&one);
        let changed =
            override_store.change(now, OverrideChange::Set(one)).await.map_err(refused)?;
        self.changed("override set", &changed, Some(shown), actor)
    }

    /// Removes an override. The request also succeeds if the override does not exist.
    pub(super) async fn remove_override(&self, query: &str, actor: &Actor) -> Answer {
        let override_store = self.override_store()?;
        let target = self.target_in(query, &override_store.table())?;
        match override_store.change(self.limiter.now(), OverrideChange::Remove(target)).await {
            Err(OverrideStoreError::Missing) => {
                let version = override_store.table().version().changes;
                Ok(json::write(&OverrideResponse {
                    before: None,
                    after: None,
                    version,
                    pending: None,
                })?)
            }
            Err(error) => Err(refused(error)),
            Ok(changed) => self.changed("override removed", &changed, None, actor),
        }
    }

    fn changed(
        &self,
        action: &'static str,
        changed: &ChangeResult,
        after: Option<OverrideDetails>,
        actor: &Actor,
    ) -> Answer {
        let before = changed.before.as_ref().map(|one| self.shown_override(one));
        let value = |shown: &Option<OverrideDetails>| {
            // Texts and numbers always convert to JSON.
            serde_json::to_value(shown).unwrap_or_default()
        };
        let (before_told, after_told) = (value(&before), value(&after));
        let message = if after.is_some() { &after_told } else { &before_told };
        let member = |name: &str| message.get(name).cloned().unwrap_or(Value::Null);
        let target = value!({
            "limit": member("limit"), "subject": member("subject"), "group": member("group"),
            "everybody": member("everybody"), "rule": member("rule"),
            "shedding": member("shedding"),
        });
        self.note(actor, AuditEvent { action, target, before: before_told, after: after_told });
        let version = changed.table.version().changes;
        let pending = changed.pending.is_some().then_some(true);
        Ok(json::write(&OverrideResponse { before, after, version, pending })?)
    }

    fn requested(
        &self,
        request: &OverrideRequest<'_>,
        now: Timestamp,
    ) -> Result<Override, Problem> {
        let policy = self.limiter.policy();
        let named = named(request)?;
        let target = target(&policy, self.limiter.key(), request.limit.as_deref(), &named)?;
        let effect = effect(request, &policy, &target)?;
        let expires_at = match &*request.expires_in {
            "never" => NEVER,
            duration => now.after(parse_duration(duration)?),
        };
        if !(1..=MAX_REASON).contains(&request.reason.len()) {
            return Err(invalid(format!("a reason has 1 to {MAX_REASON} bytes")));
        }
        Ok(Override { target, effect, expires_at, reason: request.reason.as_ref().into() })
    }

    /// Finds in `table` the override that `query` names. An override with names that the policy no
    /// longer has can still be removed.
    fn target_in(&self, query: &str, table: &OverrideTable) -> Result<OverrideScope, Problem> {
        let (mut limit, mut subject, mut group) = (None, Vec::new(), Vec::new());
        let mut switches = Vec::new();
        let parameters = parameters(query)?;
        for (name, value) in &parameters {
            let within = |word: &str| name.strip_prefix(word)?.strip_prefix('[')?.strip_suffix(']');
            match (&**name, within("subject"), within("group")) {
                ("limit", ..) if limit.is_some() => {
                    return Err(invalid("send `limit` at most once"));
                }
                ("limit", ..) => limit = value.as_deref(),
                ("everybody", ..) if value.as_deref() == Some("true") => {
                    switches.push(TargetSelector::AllSubjects);
                }
                ("rule", ..) => {
                    switches.push(TargetSelector::Rule(value.as_deref().unwrap_or_default()));
                }
                ("shedding", ..) => {
                    switches.push(TargetSelector::Shedding(shedder(value.as_deref())?));
                }
                (_, Some(dimension), _) => subject.push((dimension, value.as_deref())),
                (_, _, Some(dimension)) => group.push((dimension, value.as_deref())),
                _ => {
                    let known = "`limit=NAME`, `subject[NAME]=VALUE`, `group[NAME]=VALUE`, \
                                 `everybody=true`, `rule=NAME` and `shedding=WHICH`";
                    let detail = format!("unknown parameter {name:?}: the parameters are {known}");
                    return Err(query::invalid(detail));
                }
            }
        }
        let switch = switches.pop();
        let named = match (subject.is_empty(), group.is_empty(), switch) {
            (_, true, None) => TargetSelector::Subject(subject),
            (true, false, None) => TargetSelector::Group(group),
            (true, true, Some(switch)) if switches.is_empty() => switch,
            _ => {
                return Err(invalid(
                    "send exactly one of `subject`, `group`, `everybody`, `rule` and `shedding`",
                ));
            }
        };
        let (policy, key, now) = (self.limiter.policy(), self.limiter.key(), self.limiter.now());
        target(&policy, key, limit, &named).or_else(|problem| {
            let is_there = |target: &OverrideScope| table.get(target, now).is_some();
            past_targets(key, limit, &named).find(is_there).ok_or(problem)
        })
    }

    /// Returns the JSON document for an override, as administrators see it. Values of subjects are
    /// hashed.
    pub(super) fn shown_override(&self, one: &Override) -> OverrideDetails {
        let shown = |subject| RedactedSubject::of(subject, Redaction::Hashed, self.limiter.key());
        let (subject, group) = match &one.target.target {
            OverrideTarget::Subject(subject) => (Some(shown(subject)), None),
            OverrideTarget::Value(pair) => (None, Some(shown(pair))),
            OverrideTarget::AllSubjects | OverrideTarget::Rule(_) | OverrideTarget::Shedding(_) => {
                (None, None)
            }
            OverrideTarget::Network { dimension, network } => {
                (None, Some(RedactedSubject::pair(dimension, network.to_string())))
            }
        };
        let (quota, burst) = match one.effect {
            Effect::Quota { quota, burst } => (Some(quota), burst),
            Effect::Unlimited | Effect::Blocked | Effect::Counted => (None, None),
        };
        OverrideDetails {
            limit: one.target.limit.clone(),
            subject,
            group,
            everybody: (one.target.target == OverrideTarget::AllSubjects).then_some(true),
            rule: match &one.target.target {
                OverrideTarget::Rule(name) => Some(name.clone()),
                _ => None,
            },
            shedding: match one.target.target {
                OverrideTarget::Shedding(shedder) => Some(shedder.into()),
                _ => None,
            },
            quota,
            burst,
            unlimited: (one.effect == Effect::Unlimited).then_some(true),
            blocked: (one.effect == Effect::Blocked).then_some(true),
            counted: (one.effect == Effect::Counted).then_some(true),
            expires: one.ends_at(),
            reason: one.reason.clone(),
            pending: None,
        }
    }

    fn override_store(&self) -> Result<&dyn OverrideStore, Problem> {
        let override_store = self.options.overrides.as_deref();
        override_store
            .ok_or_else(|| Problem::new(Kind::NotFound, "this listener does not support overrides"))
    }
}

/// Returns the target that the request names.
fn named<'r>(request: &'r OverrideRequest<'_>) -> Result<TargetSelector<'r>, Problem> {
    let OverrideRequest { subject, group, everybody, rule, shedding, .. } = request;
    match (subject, group, everybody, rule, shedding) {
        (Some(subject), None, None, None, None) => {
            Ok(TargetSelector::Subject(subject.values().collect()))
        }
        (None, Some(group), None, None, None) => {
            Ok(TargetSelector::Group(group.values().collect()))
        }
        (None, None, Some(true), None, None) => Ok(TargetSelector::AllSubjects),
        (None, None, None, Some(rule), None) => Ok(TargetSelector::Rule(rule)),
        (None, None, None, None, Some(shedder)) => Ok(TargetSelector::Shedding((*shedder).into())),
        _ => Err(invalid_request(
            "give one of \"subject\", \"group\", \"everybody\": true, \"rule\", \"shedding\"",
        )),
    }
}

fn shedder(name: Option<&str>) -> Result<SheddingTarget, Problem> {
    let known = SheddingTarget::VARIANTS.into_iter().find(|shedder| Some(shedder.name()) == name);
    known.ok_or_else(|| query::invalid("`shedding` is `all`, `fleet` or `worker`"))
}

/// Returns the effect of the override. A quota that the limit cannot count is an error.
fn effect(
    request: &OverrideRequest<'_>,
    policy: &Policy,
    target: &OverrideScope,
) -> Result<Effect, Problem> {
    let OverrideRequest { quota, burst, unlimited, blocked, counted, .. } = request;
    let units = |units: Units| units.cost().get();
    let effect = match (*quota, *unlimited, *blocked, *counted) {
        (Some(quota), None, None, None) => {
            Effect::Quota { quota: units(quota), burst: burst.map(units) }
        }
        (None, Some(true), None, None) => Effect::Unlimited,
        (None, None, Some(true), None) => Effect::Blocked,
        (None, None, None, Some(true)) => Effect::Counted,
        _ => {
            let message = "give one of \"quota\", \"unlimited\": true, \"blocked\": true, \
                        \"counted\": true";
            return Err(invalid_request(message));
        }
    };
    let is_switch = matches!(target.target, OverrideTarget::Rule(_) | OverrideTarget::Shedding(_));
    if is_switch && !matches!(effect, Effect::Unlimited | Effect::Counted) {
        return Err(invalid(
            "an override of a rule or of load shedding is either unlimited or counted",
        ));
    }
    let Effect::Quota { quota, burst } = effect else {
        return match burst {
            Some(_) => Err(invalid("`burst` requires `quota`")),
            None => Ok(effect),
        };
    };
    let Some(name) = &target.limit else {
        return Err(invalid("`quota` requires `limit`"));
    };
    let limit = policy.limits().iter().find(|binding| binding.limit.name() == &**name);
    match limit.map(|binding| binding.limit.with_quota(quota, burst)) {
        Some(Err(error)) => Err(invalid(error.to_string())),
        _ => Ok(effect),
    }
}

/// Parses `90s`, `15m`, `12h` or `7d`.
fn parse_duration(text: &str) -> Result<Millis, Problem> {
    let wrong = || {
        invalid_request(
            "`expires_in` is a time such as \"90s\", \"15m\", \"12h\" or \"7d\", or \"never\"",
        )
    };
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let is_number = (1..=8).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && !number.starts_with('0');
    let number: u64 = number.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    let lasts = Millis::from_secs(number * seconds);
    if lasts > MAX_OVERRIDE_DURATION {
        return Err(invalid("an override lasts at most 366 days, or has no end: \"never\""));
    }
    Ok(lasts)
}

fn invalid_request(detail: &'static str) -> Problem {
    Problem::new(Kind::InvalidRequest, detail)
}

fn refused(error: OverrideStoreError) -> Problem {
    match error {
        OverrideStoreError::Store(_) | OverrideStoreError::LocalFull { .. } => {
            Problem::new(Kind::StoreUnavailable, error.to_string())
        }
        _ => Problem::new(Kind::OverrideRefused, error.to_string()),
    }
}
