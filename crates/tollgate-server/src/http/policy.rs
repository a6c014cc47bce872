//! `GET /v1/policy`: the current policy, for administrators.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate::Revision;
use tollgate::model::policy::{
    ChargeOn, LimitBinding, LimitRef, MatchMode, Meter, OnFailure, PathPattern, RequestMatch, Rule,
    RuleMode, SubjectSource, ValueMatch, ValuePattern,
};
use tollgate::model::{Algorithm, Limit, Store, Visibility};

use super::app::App;
use super::json;
use super::percentage::Percentage;
use super::redaction::Redaction;
use super::respond::Answer;
use super::wire::OverrideDetails;

/// The current policy.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PolicyResponse<'a> {
    /// The version of the policy. The same file has the same version on every node.
    policy: &'a str,
    /// Which of the matching rules apply: `first_match` or `all_matches`.
    rules_apply: &'static str,
    /// The subjects that limits count by.
    subjects: Vec<SubjectText<'a>>,
    /// The limits, in the file's order.
    limits: Vec<LimitText<'a>>,
    /// The rules, in the order in which they are evaluated.
    rules: Vec<RuleText<'a>>,
}

/// A subject that limits count by.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicySubject")]
struct SubjectText<'a> {
    /// The name of the subject.
    name: &'a str,
    /// The source of the subject's value: `credential`, `header`, `cookie`, `client_address`,
    /// `path_parameter`, `json`, `host`, `route`, `method`, `constant`, `query`, `path_segment`,
    /// `tls_client`, `claim`, `expression`, `application` or `first_of`.
    source: &'static str,
    /// Whether the values are credentials, which are hashed before use.
    secret: bool,
}

/// A limit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyLimit")]
struct LimitText<'a> {
    /// The name of the limit.
    name: &'a str,
    /// The name that clients see.
    resource: &'a str,
    /// `fixed_window`, `sliding_window`, `two_bucket`, `sliding_log`, `token_bucket` or
    /// `concurrency`.
    algorithm: &'static str,
    /// Units per window, or units in flight for `concurrency`.
    quota: u64,
    /// The window in milliseconds, or the `permit_ttl` for `concurrency`.
    window_ms: u64,
    /// The most units that can be used at one moment.
    capacity: u64,
    /// The subjects that the limit counts by. Empty if all clients share one counter.
    per: Vec<&'a str>,
    /// Whether clients see the limit.
    visible: bool,
    /// Whether administrators see the subjects of the limit in clear text. Credentials are always
    /// hashed.
    revealed: bool,
    /// The percentage of subjects for which the limit refuses requests. For other subjects, it
    /// counts and never refuses.
    enforced_percent: Percentage,
    /// The candidate definition that is evaluated on the same requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CandidateText")]
    candidate: Option<CandidateText>,
    /// The override that replaces the limit for all subjects: a kill switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OverrideDetails")]
    switch: Option<OverrideDetails>,
}

/// A candidate definition of a limit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyCandidate")]
struct CandidateText {
    /// The algorithm, as for a limit.
    algorithm: &'static str,
    /// Units per window, or units in flight for `concurrency`.
    quota: u64,
    /// The window in milliseconds, or the `permit_ttl` for `concurrency`.
    window_ms: u64,
    /// The most units that can be used at one moment.
    capacity: u64,
}

/// A rule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyRule")]
struct RuleText<'a> {
    /// The name of the rule.
    name: &'a str,
    /// `enforce` or `shadow`.
    mode: &'static str,
    /// When the rule charges: `on_arrival` or `on_completion`.
    charge: &'static str,
    /// The fallback while the store does not answer: `allow`, `local` or `deny`.
    on_failure: &'static str,
    /// The conditions that a request must all meet. Without conditions, the rule matches every
    /// request.
    #[serde(rename = "match")]
    matches: MatchText<'a>,
    /// The limits that the rule charges.
    limits: Vec<UseText<'a>>,
    /// The override that replaces the rule: a kill switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OverrideDetails")]
    switch: Option<OverrideDetails>,
}

/// The conditions of a rule. A condition with several values is met by any of them, except for
/// `headers`, `query`, `cookies`, `has` and `lacks`, which must all be met.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyMatch")]
struct MatchText<'a> {
    /// The methods, of which the request must have one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    methods: Vec<&'a str>,
    /// The patterns, of which one must match the request's path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<&'a str>,
    /// The hosts, of which the request must name one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<&'a str>,
    /// The networks, of which one must contain the client's address, or names of lists of networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    networks: Vec<&'a str>,
    /// Header fields that must be present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<ValueText<'a>>,
    /// Query parameters that must be present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    query: Vec<ValueText<'a>>,
    /// Cookies that must be present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cookies: Vec<ValueText<'a>>,
    /// Subjects for which the request must have a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    has: Vec<&'a str>,
    /// Subjects for which the request must have no value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lacks: Vec<&'a str>,
    /// An expression that must be met.
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<&'a str>,
    /// Sets of conditions of which at least one must be met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    any: Vec<Self>,
    /// Sets of conditions of which none may be met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not: Vec<Self>,
}

/// A header field, query parameter or cookie that must be present.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyMatchValue")]
struct ValueText<'a> {
    /// The name of the value.
    name: &'a str,
    /// The values and patterns of which one must match. Missing if any value matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<&'a str>,
}

/// A limit that a rule charges.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyUse")]
struct UseText<'a> {
    /// The limit's name.
    name: &'a str,
    /// Units per request. If the response reports the cost, these units are reserved until the
    /// response, unless the request contains an estimate.
    cost: u64,
    /// The source of the cost, if the response reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MeterText")]
    meter: Option<MeterText<'a>>,
}

/// The source of a cost.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyMeter")]
struct MeterText<'a> {
    /// The source of the cost: a `header` field or a `json` value of the response, the `size` of
    /// the response, or the `time` until its end.
    from: &'static str,
    /// The name of the header field, or the path in the JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    name: Option<&'a str>,
    /// The number of bytes or milliseconds per unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    each: Option<u64>,
}

impl<S: Store> App<S> {
    /// Returns the current policy.
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
            secret: dimension.source.is_secret(),
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
        SubjectSource::Query { .. } => "query",
        SubjectSource::PathSegment { .. } => "path_segment",
        SubjectSource::FirstOf { .. } => "first_of",
        SubjectSource::TlsClient { .. } => "tls_client",
        SubjectSource::ClientAddress { .. } => "client_address",
        SubjectSource::PathParameter { .. } => "path_parameter",
        SubjectSource::Claim(_) => "claim",
        SubjectSource::Expression { .. } => "expression",
        SubjectSource::Host => "host",
        SubjectSource::Route => "route",
        SubjectSource::Method => "method",
        SubjectSource::Json { .. } => "json",
        SubjectSource::Application { .. } => "application",
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

/// Returns the algorithm, its units, and its window in milliseconds.
fn numbers(limit: &Limit) -> (&'static str, u64, u64) {
    match limit.algorithm() {
        Algorithm::FixedWindow(limit) => {
            ("fixed_window", limit.quota(), limit.nominal_window().get())
        }
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
        matches: conditions(policy, &rule.matches),
        limits: rule.limits.iter().filter_map(used).collect(),
        switch: None,
    }
}

fn conditions<'a>(policy: &'a Revision, matches: &'a RequestMatch) -> MatchText<'a> {
    let subjects = |all: &[usize]| {
        let found = all.iter().filter_map(|index| policy.dimensions().get(*index));
        found.map(|dimension| &*dimension.name).collect()
    };
    let values = |all: &'a [ValueMatch]| all.iter().map(value).collect();
    let nested = |all: &'a [RequestMatch]| all.iter().map(|it| conditions(policy, it)).collect();
    MatchText {
        methods: matches.methods.iter().map(|method| &**method).collect(),
        paths: matches.paths.iter().map(PathPattern::as_str).collect(),
        hosts: matches.hosts.iter().map(|host| &**host).collect(),
        networks: matches.networks.iter().map(|list| &*list.name).collect(),
        headers: values(&matches.headers),
        query: values(&matches.query),
        cookies: values(&matches.cookies),
        has: subjects(&matches.has),
        lacks: subjects(&matches.lacks),
        when: matches.when.as_ref().map(|when| &*when.text),
        any: nested(&matches.any),
        not: nested(&matches.not),
    }
}

fn value(wanted: &ValueMatch) -> ValueText<'_> {
    let values = wanted.values.iter().map(ValuePattern::as_str).collect();
    ValueText { name: &wanted.name, values }
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
