//! `GET /v1/policy`: the policy in force, for those who run it.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate::Revision;
use tollgate::core::policy::{
    ChargeOn, LimitBinding, LimitRef, MatchMode, Meter, OnFailure, Rule, RuleMode, SubjectSource,
};
use tollgate::core::{Algorithm, Limit, Store, Visibility};

use super::app::App;
use super::json;
use super::percentage::Percentage;
use super::redaction::Redaction;
use super::respond::Answer;
use super::wire::OverrideDetails;

/// The policy in force.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PolicyResponse<'a> {
    /// Its version: the same for the same file on every node.
    policy: &'a str,
    /// Which of the matching rules decide: `first_match` or `all_matches`.
    rules_apply: &'static str,
    /// What limits count by.
    subjects: Vec<SubjectText<'a>>,
    /// The limits, in the file's order.
    limits: Vec<LimitText<'a>>,
    /// The rules, in the order in which they are tried.
    rules: Vec<RuleText<'a>>,
}

/// A dimension of subjects.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicySubject")]
struct SubjectText<'a> {
    /// Its name.
    name: &'a str,
    /// Where its value comes from: `credential`, `header`, `cookie`, `client_address`,
    /// `path_parameter`, `json`, `host`, `route`, `method` or `constant`.
    source: &'static str,
    /// Whether its values are credentials, which are hashed before they are used.
    secret: bool,
}

/// A limit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyLimit")]
struct LimitText<'a> {
    /// Its name.
    name: &'a str,
    /// The name under which clients see it.
    resource: &'a str,
    /// `fixed_window`, `sliding_window`, `two_bucket`, `sliding_log`, `token_bucket` or
    /// `concurrency`.
    algorithm: &'static str,
    /// Units per window; of concurrency, units in flight.
    quota: u64,
    /// Milliseconds of the window; of `concurrency`, its `permit_ttl`.
    window_ms: u64,
    /// The most units that can be used at one moment.
    capacity: u64,
    /// What it counts by; nothing for one counter over everybody.
    per: Vec<&'a str>,
    /// Whether clients are told of it.
    visible: bool,
    /// Whether those who run it see its subjects in clear, credentials apart.
    revealed: bool,
    /// For how many of a hundred of its subjects it refuses; for the others it only counts.
    enforced_percent: Percentage,
    /// What is tried beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CandidateText")]
    candidate: Option<CandidateText>,
    /// The override of everybody that decides in its place: a switch of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OverrideDetails")]
    switch: Option<OverrideDetails>,
}

/// A definition that is tried beside a limit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyCandidate")]
struct CandidateText {
    /// How it counts, as of a limit.
    algorithm: &'static str,
    /// Units per window; of concurrency, units in flight.
    quota: u64,
    /// Milliseconds of the window; of `concurrency`, its `permit_ttl`.
    window_ms: u64,
    /// The most units that can be used at one moment.
    capacity: u64,
}

/// A rule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyRule")]
struct RuleText<'a> {
    /// Its name.
    name: &'a str,
    /// `enforce` or `shadow`.
    mode: &'static str,
    /// When it charges: `on_arrival` or `on_completion`.
    charge: &'static str,
    /// What it does while the store has no answer: `allow`, `local` or `deny`.
    on_failure: &'static str,
    /// What a request costs.
    limits: Vec<UseText<'a>>,
    /// The override that decides in its place: a switch of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OverrideDetails")]
    switch: Option<OverrideDetails>,
}

/// A limit as a rule uses it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyUse")]
struct UseText<'a> {
    /// The limit's name.
    name: &'a str,
    /// Units of one request; where the answer tells its cost, those that are reserved until then,
    /// unless the request says how many.
    cost: u64,
    /// Where the cost is read, of one that the answer tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MeterText")]
    meter: Option<MeterText<'a>>,
}

/// Where a cost is read.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyMeter")]
struct MeterText<'a> {
    /// `header` or `json` of the answer, its `size` or the `time` that it takes.
    from: &'static str,
    /// The header's name, or the place in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    name: Option<&'a str>,
    /// For how many bytes, or milliseconds, there is one unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    each: Option<u64>,
}

impl<S: Store> App<S> {
    /// The policy in force.
    pub(super) fn policy(&self) -> Answer {
        let (policy, now) = (self.limiter.policy(), self.limiter.now());
        let mut answer = PolicyResponse::of(&policy);
        for (message, LimitBinding { limit, .. }) in answer.limits.iter_mut().zip(policy.limits()) {
            let found = self.limiter.overrides().switch_of(limit, now);
            message.switch = found.map(|text| self.shown_override(&text));
            message.revealed = self.options.redaction_of(limit.name()) == Redaction::Clear;
        }
        for message in &mut answer.rules {
            let found = self.limiter.overrides().rule_switch(message.name, now);
            message.switch = found.map(|text| self.shown_override(&text));
        }
        Ok(json::write(&answer)?)
    }
}

impl<'a> PolicyResponse<'a> {
    fn of(policy: &'a Revision) -> Self {
        let rules_apply = match policy.match_mode() {
            MatchMode::FirstMatch => "first_match",
            MatchMode::AllMatches => "all_matches",
        };
        let subjects = policy.dimensions().iter().map(|dimension| SubjectText {
            name: &dimension.name,
            source: source(&dimension.source),
            secret: matches!(
                dimension.source,
                SubjectSource::Credential { .. } | SubjectSource::Cookie { .. }
            ),
        });
        Self {
            policy: policy.version(),
            rules_apply,
            subjects: subjects.collect(),
            limits: policy.limits().iter().map(|binding| limit(policy, binding)).collect(),
            rules: policy.rules().iter().map(|one| rule(policy, one)).collect(),
        }
    }
}

fn source(source: &SubjectSource) -> &'static str {
    match source {
        SubjectSource::Credential { .. } => "credential",
        SubjectSource::Header { .. } => "header",
        SubjectSource::Cookie { .. } => "cookie",
        SubjectSource::ClientAddress { .. } => "client_address",
        SubjectSource::PathParameter { .. } => "path_parameter",
        SubjectSource::Host => "host",
        SubjectSource::Route => "route",
        SubjectSource::Method => "method",
        SubjectSource::Json { .. } => "json",
        SubjectSource::Constant { .. } => "constant",
    }
}

fn limit<'a>(policy: &'a Revision, LimitBinding { limit, per }: &'a LimitBinding) -> LimitText<'a> {
    let (algorithm, quota, window) = numbers(limit);
    let dimensions = per.iter().filter_map(|index| policy.dimensions().get(*index));
    LimitText {
        name: limit.name(),
        resource: limit.resource(),
        algorithm,
        quota,
        window_ms: window,
        capacity: limit.capacity(),
        per: dimensions.map(|dimension| &*dimension.name).collect(),
        visible: limit.visibility() == Visibility::Visible,
        revealed: false,
        enforced_percent: Percentage(limit.enforced()),
        candidate: limit.candidate().map(|limit| candidate(limit)),
        switch: None,
    }
}

fn candidate(limit: &Limit) -> CandidateText {
    let (algorithm, quota, window_ms) = numbers(limit);
    CandidateText { algorithm, quota, window_ms, capacity: limit.capacity() }
}

/// The algorithm, units, and in how many milliseconds.
fn numbers(limit: &Limit) -> (&'static str, u64, u64) {
    match limit.algorithm() {
        Algorithm::FixedWindow(limit) => ("fixed_window", limit.quota(), limit.window().get()),
        Algorithm::SlidingWindow(limit) => ("sliding_window", limit.quota(), limit.window().get()),
        Algorithm::TwoBucket(limit) => ("two_bucket", limit.quota(), limit.window().get()),
        Algorithm::SlidingLog(limit) => ("sliding_log", limit.quota(), limit.window().get()),
        Algorithm::TokenBucket(limit) => ("token_bucket", limit.quota(), limit.window().get()),
        Algorithm::Concurrency(limit) => ("concurrency", limit.quota(), limit.permit_ttl().get()),
    }
}

fn rule<'a>(policy: &'a Revision, rule: &'a Rule) -> RuleText<'a> {
    let mode = match rule.mode {
        RuleMode::Enforce => "enforce",
        RuleMode::Shadow => "shadow",
    };
    let charge = match rule.charge {
        ChargeOn::Completion => "on_completion",
        ChargeOn::Arrival => "on_arrival",
    };
    let on_failure = match rule.on_failure {
        OnFailure::Allow => "allow",
        OnFailure::Local => "local",
        OnFailure::Deny => "deny",
    };
    let used = |used: &LimitRef| {
        let binding = policy.limits().get(used.limit)?;
        let metered = rule.metered.iter().find(|metered| metered.limit == used.limit);
        let meter = metered.map(|metered| meter(&metered.meter));
        Some(UseText { name: binding.limit.name(), cost: used.cost.get(), meter })
    };
    RuleText {
        name: &rule.name,
        mode,
        charge,
        on_failure,
        limits: rule.limits.iter().filter_map(used).collect(),
        switch: None,
    }
}

fn meter(meter: &Meter) -> MeterText<'_> {
    let (from, name, each) = match meter {
        Meter::Header { field } => ("header", Some(&**field), None),
        Meter::Json { pointer } => ("json", Some(pointer.as_str()), None),
        Meter::Size { bytes } => ("size", None, Some(bytes.get())),
        Meter::Time { each } => ("time", None, Some(each.get())),
    };
    MeterText { from, name, each }
}
