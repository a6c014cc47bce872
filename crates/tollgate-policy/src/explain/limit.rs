//! Describes limits, subjects and conditions in words, for `tollgate check`.

use std::fmt::Write;

use tollgate_core::algo::Anchor;
use tollgate_core::policy::{
    AmbiguousPaths, ChargeOn, Dimension, HeaderProfile, LimitBinding, LimitRef, Meter,
    MeteredLimit, OnFailure, PathCase, PathOptions, PathParameters, RequestMatch,
    ReservationSource, ResponseSettings, Rule, RuleMode, SubjectSource, UnreadBodies, ValueMatch,
    ValuePattern, WindowsByValue,
};
use tollgate_core::refusal::RefusalSettings;
use tollgate_core::{
    Algorithm, CertificateName, Cost, Limit, LimitMode, OnExpiry, Percent, Policy, Refusals,
    ReservationTerms, Unit, Visibility,
};

use super::descriptor;

/// Describes the limits that a rule charges, for example
/// `search, points at 5, cpu at a unit for each 1ms`.
pub(crate) fn uses(policy: &Policy, rule: &Rule) -> String {
    let one = |used: &LimitRef| {
        let name = policy.limits()[used.limit].limit.name();
        let metered = rule.metered.iter().find(|metered| metered.limit == used.limit);
        match (metered, used.cost.get()) {
            (Some(metered), otherwise) => {
                format!("{name} at {}", self::metered(metered, otherwise))
            }
            (None, 1) => name.to_owned(),
            (None, cost) => format!("{name} at {cost}"),
        }
    };
    match rule.limits.as_slice() {
        [] => "no limit".to_owned(),
        uses => uses.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

/// Describes a metered cost, for example `the value at /usage/total_tokens in the response
/// (reserved: the value at /max_tokens in the request, else 1024)`. `otherwise` is the number of
/// units that are reserved if the request does not contain a number.
fn metered(metered: &MeteredLimit, otherwise: u64) -> String {
    let cost = match &*metered.meter {
        Meter::Header { field } => format!("the value of the response header {field}"),
        Meter::Json { pointer } => format!("the value at {} in the response", pointer.as_str()),
        Meter::Size { bytes } => format!("a unit for each {bytes} bytes of the response"),
        Meter::Time { each } => format!("a unit for each {each} until the end of the response"),
    };
    let Some(reserve) = &metered.reserve else { return format!("{cost} (reserved: {otherwise})") };
    let described = match &reserve.source {
        ReservationSource::Header { field } => format!("the value of the request header {field}"),
        ReservationSource::Json { pointer } => {
            format!("the value at {} in the request", pointer.as_str())
        }
    };
    let bound = |what: &str, units: Option<Cost>| {
        units.map(|units| format!(", {what} {}", units.get())).unwrap_or_default()
    };
    let (least, most) = (bound("at least", reserve.at_least), bound("at most", reserve.at_most));
    format!("{cost} (reserved: {described}{least}{most}, else {otherwise})")
}

/// Describes a limit, for example `5000 requests per 1h for each token`.
pub(crate) fn limit(policy: &Policy, binding: &LimitBinding) -> String {
    let quotas = quotas(policy, &binding.limit) + &billing_days(policy, &binding.limit);
    quotas_and_terms(policy, binding, &binding.limit, &quotas)
}

/// Describes the limit on which a request is charged. `charged` is the limit of `binding` with the
/// quota that the request selected.
pub(crate) fn charged(policy: &Policy, binding: &LimitBinding, charged: &Limit) -> String {
    let selected = charged.quota_value().map(|value| format!("; the quota of {value}"));
    quotas_and_terms(policy, binding, charged, &selected.unwrap_or_default())
}

/// Describes the quotas by value of a limit, for example `; by plan: free 60, pro 6000`.
fn quotas(policy: &Policy, limit: &Limit) -> String {
    let Some(quotas) = policy.quotas_of(limit) else { return String::new() };
    let one = |limit: &std::sync::Arc<Limit>| {
        let (value, quota) = (limit.quota_value().unwrap_or_default(), limit.quota_per_window().0);
        match limit.burst() {
            None => format!("{value} {quota}"),
            Some(burst) => format!("{value} {quota}, at most {burst} at once"),
        }
    };
    let quotas_of: Vec<String> = quotas.limits().iter().map(one).collect();
    let subject = quotas.dimension().and_then(|index| policy.dimensions().get(index));
    let by = match (subject, quotas.is_by_tenant()) {
        (Some(subject), false) => subject.name.to_string(),
        (Some(subject), true) => format!("plan of the tenant, else {}", subject.name),
        (None, _) => "plan of the tenant".to_owned(),
    };
    format!("; by {by}: {}", quotas_of.join(", "))
}

/// Describes the billing day of a limit, for example `; the billing day is the value of renewal`.
fn billing_days(policy: &Policy, limit: &Limit) -> String {
    let subject = policy.windows_of(limit).map(WindowsByValue::dimension);
    let subject = subject.and_then(|index| policy.dimensions().get(index));
    let text = |subject: &Dimension| format!("; the billing day is the value of {}", subject.name);
    subject.map(text).unwrap_or_default()
}

fn quotas_and_terms(
    policy: &Policy,
    binding: &LimitBinding,
    limit: &Limit,
    quotas: &str,
) -> String {
    let mut text = amount(limit);
    text.push_str(&subjects(policy, binding));
    text.push_str(quotas);
    if limit.visibility() == Visibility::Hidden {
        text.push_str("; hidden");
    }
    if limit.refusals() == Refusals::Counted {
        text.push_str("; refusals count");
    }
    // Writing to a string cannot fail.
    if let Some(statuses) = limit.counted() {
        let _ = write!(text, "; only responses with {statuses} count");
    }
    if let Some(refusal) = limit.refusal() {
        let _ = write!(text, "; refused with {}", self::refusal(refusal));
    }
    if limit.mode() == LimitMode::Leased {
        text.push_str("; leased");
    }
    if *limit.reservation_terms() != ReservationTerms::default() {
        let ReservationTerms { max, at_most, on_expiry, overdraft } = *limit.reservation_terms();
        let _ = write!(text, "; reserved for at most {max}");
        if at_most < limit.capacity() {
            let _ = write!(text, ", {at_most} at once");
        }
        if on_expiry == OnExpiry::Charge {
            text.push_str(", charged on expiry");
        }
        if overdraft > 0 {
            let _ = write!(text, ", overdraft at most {overdraft}");
        }
    }
    if limit.resource() != limit.name() {
        let _ = write!(text, "; clients see it as {}", limit.resource());
    }
    if limit.enforced() != Percent::ALL {
        let _ = write!(text, "; enforced for {} of the subjects", limit.enforced());
    }
    if let Some(candidate) = limit.candidate() {
        let _ = write!(text, "; candidate: {}", amount(candidate));
    }
    text
}

/// Describes the quota and the window of a limit, for example `5000 requests per 1h`.
fn amount(limit: &Limit) -> String {
    let unit = match limit.unit() {
        Unit::Requests => "requests",
        Unit::ContentBytes => "bytes",
        Unit::ConcurrentRequests => "requests in flight",
    };
    match limit.algorithm() {
        Algorithm::FixedWindow(it) => {
            let (quota, window) = (it.quota(), it.window());
            match it.anchor() {
                Anchor::FirstRequest => format!("{quota} {unit} per {window}"),
                Anchor::Calendar => format!("{quota} {unit} per {window} (calendar)"),
                Anchor::Scheduled(schedule) => {
                    format!("{quota} {unit} per calendar {}", schedule.name())
                }
            }
        }
        Algorithm::SlidingWindow(it) => {
            let (quota, window, precision) = (it.quota(), it.window(), it.precision());
            format!("{quota} {unit} in any {window}, precision {precision}")
        }
        Algorithm::TwoBucket(it) => format!("about {} {unit} in any {}", it.quota(), it.window()),
        Algorithm::SlidingLog(it) => format!("{} {unit} in any {}", it.quota(), it.window()),
        Algorithm::TokenBucket(it) => {
            format!("{} {unit} per {}, at most {} at once", it.quota(), it.window(), it.burst())
        }
        Algorithm::Concurrency(it) => format!("{} {unit} at once", it.quota()),
    }
}

fn subjects(policy: &Policy, binding: &LimitBinding) -> String {
    let per = binding.per.iter();
    let names: Vec<&str> = per.map(|index| &*policy.dimensions()[*index].name).collect();
    match names.as_slice() {
        [] if descriptor::uses(policy, binding) => " for each descriptor".to_owned(),
        [] => " for all clients together".to_owned(),
        names => format!(" for each {}", names.join(" and ")),
    }
}

/// Describes the source of a subject, for example `the credential in authorization, hashed`.
pub(crate) fn source(dimension: &Dimension) -> String {
    match &dimension.source {
        SubjectSource::Credential { header } => format!("the credential in {header}, hashed"),
        SubjectSource::Header { header } => format!("the header {header}"),
        SubjectSource::Cookie { cookie } => format!("the cookie {cookie}, hashed"),
        SubjectSource::ClientAddress { ipv4_prefix: 32, ipv6_prefix } => {
            format!("the client's address, for IPv6 its /{ipv6_prefix}")
        }
        SubjectSource::ClientAddress { ipv4_prefix, ipv6_prefix } => {
            format!("the client's network: /{ipv4_prefix}, for IPv6 its /{ipv6_prefix}")
        }
        SubjectSource::PathParameter { parameter } => format!("{{{parameter}}} in the path"),
        SubjectSource::Json { pointer, unread: UnreadBodies::Pass } => {
            format!("{} in the JSON body", pointer.as_str())
        }
        SubjectSource::Json { pointer, unread: UnreadBodies::Refuse } => {
            format!("{} in the JSON body; refused if it cannot be read there", pointer.as_str())
        }
        SubjectSource::Query { parameter, is_secret: false } => {
            format!("the query parameter {parameter}")
        }
        SubjectSource::Query { parameter, is_secret: true } => {
            format!("the query parameter {parameter}, hashed")
        }
        SubjectSource::PathSegment { number } => format!("segment {number} of the path"),
        SubjectSource::FirstOf { dimensions } => {
            let names: Vec<&str> = dimensions.iter().map(|one| &*one.name).collect();
            format!("the first that the request has: {}", names.join(", "))
        }
        SubjectSource::TlsClient { name } => {
            format!("the {} in the client's certificate", certificate_name(*name))
        }
        SubjectSource::Claim(claim) => {
            let verified = if claim.reader.is_verified() { "verified" } else { "not verified" };
            let place = match &*claim.token {
                SubjectSource::Cookie { cookie } => format!("the cookie {cookie}"),
                SubjectSource::Credential { header } => header.to_string(),
                _ => "the request".to_owned(),
            };
            format!("the claim {} of the token in {place}, {verified}", claim.path.join(" > "))
        }
        SubjectSource::Expression { written, is_secret: false, .. } => written.to_string(),
        SubjectSource::Expression { written, is_secret: true, .. } => format!("{written}, hashed"),
        SubjectSource::Host => "the host".to_owned(),
        SubjectSource::Route => "the path pattern of the rule".to_owned(),
        SubjectSource::Method => "the method".to_owned(),
        SubjectSource::Application { name } => format!("{name}, as the application provides it"),
        SubjectSource::Constant { value } => format!("always {value}"),
    }
}

const fn certificate_name(name: CertificateName) -> &'static str {
    match name {
        CertificateName::Subject => "subject",
        CertificateName::CommonName => "common name",
        CertificateName::Dns => "DNS name",
        CertificateName::Uri => "URI",
        CertificateName::Email => "email address",
    }
}

/// Describes the sets of conditions in `any` or `not` of a rule.
pub(crate) fn sets(policy: &Policy, sets: &[RequestMatch]) -> String {
    sets.iter().map(|set| conditions(policy, set)).collect::<Vec<_>>().join("; ")
}

/// Describes a condition on a header, query parameter or cookie, for example `header x-plan: free
/// or pro`.
fn wanted_values(kind: &str, wanted: &ValueMatch) -> String {
    match values(wanted) {
        None => format!("{kind} {}", wanted.name),
        Some(values) => format!("{kind} {}: {values}", wanted.name),
    }
}

/// Describes the values that a condition accepts, for example `free or pro`. Returns `None` if the
/// condition accepts any value.
pub(crate) fn values(wanted: &ValueMatch) -> Option<String> {
    let values: Vec<&str> = wanted.values.iter().map(ValuePattern::as_str).collect();
    (!values.is_empty()).then(|| values.join(" or "))
}

/// Describes the conditions of a rule, for example `GET or HEAD on /search/**, with a token`.
pub(crate) fn conditions(policy: &Policy, matches: &RequestMatch) -> String {
    let names = |indices: &[usize]| -> Vec<String> {
        indices.iter().map(|index| policy.dimensions()[*index].name.to_string()).collect()
    };
    let mut parts = Vec::new();
    if !matches.methods.is_empty() {
        parts.push(matches.methods.join(" or "));
    }
    if !matches.paths.is_empty() {
        let paths: Vec<&str> = matches.paths.iter().map(|path| path.as_str()).collect();
        parts.push(format!("path {}", paths.join(" or ")));
    }
    if !matches.hosts.is_empty() {
        parts.push(format!("host {}", matches.hosts.join(" or ")));
    }
    if !matches.networks.is_empty() {
        let networks: Vec<&str> = matches.networks.iter().map(|list| &*list.name).collect();
        parts.push(format!("from {}", networks.join(" or ")));
    }
    parts.extend(matches.headers.iter().map(|wanted| wanted_values("header", wanted)));
    parts.extend(matches.query.iter().map(|wanted| wanted_values("query", wanted)));
    parts.extend(matches.cookies.iter().map(|wanted| wanted_values("cookie", wanted)));
    parts.extend(names(&matches.has).into_iter().map(|name| format!("has {name}")));
    parts.extend(names(&matches.lacks).into_iter().map(|name| format!("lacks {name}")));
    parts.extend(matches.when.iter().map(|when| format!("when {}", when.text)));
    if !matches.any.is_empty() {
        parts.push(format!("any of ({})", sets(policy, &matches.any)));
    }
    parts.extend(matches.not.iter().map(|set| format!("not ({})", conditions(policy, set))));
    match parts.as_slice() {
        [] => "every request".to_owned(),
        parts => parts.join(", "),
    }
}

/// Describes how paths are compared with patterns.
pub(crate) fn paths(options: PathOptions) -> String {
    let case = match options.case {
        PathCase::Exact => "compared exactly",
        PathCase::Ignore => "compared without case",
    };
    let parameters = match options.parameters {
        PathParameters::Keep => "with parameters (;x)",
        PathParameters::Drop => "without parameters (;x)",
    };
    let ambiguous = match options.ambiguous {
        AmbiguousPaths::Refuse => "ambiguous ones are refused with 400",
        AmbiguousPaths::Pass => "ambiguous ones pass",
    };
    format!("{case}, {parameters}; {ambiguous}")
}

/// Describes the settings of a rule, such as its mode and its fallback, except those with their
/// default value.
pub(crate) fn mode_notes(rule: &Rule) -> String {
    let mode = match rule.mode {
        RuleMode::Enforce => "",
        RuleMode::Shadow => " (shadow)",
    };
    let charge = match rule.charge {
        ChargeOn::Arrival => "",
        ChargeOn::Completion => "; charged on completion",
    };
    let on_failure = match rule.on_failure {
        OnFailure::Local => "",
        OnFailure::Allow => "; admitted while the store does not answer",
        OnFailure::Deny => "; refused with 503 while the store does not answer",
    };
    let priority = rule.priority.map(|priority| format!("; priority {}", priority.name()));
    let queue = rule.queue.map(|queue| {
        format!("; up to {} requests wait for a permit, {} each", queue.length, queue.wait)
    });
    let refund = rule.refund.as_ref().map(|statuses| match statuses.is_empty() {
        true => "; no status refunds it".to_owned(),
        false => format!("; refunded if the service responds with {statuses}"),
    });
    let refund = refund.unwrap_or_default();
    let (priority, queue) = (priority.unwrap_or_default(), queue.unwrap_or_default());
    let refusal = rule.refusal.as_ref();
    let refusal =
        refusal.map(|own| format!("; refused with {}", self::refusal(own))).unwrap_or_default();
    format!("{mode}{charge}{refund}{refusal}{on_failure}{priority}{queue}")
}

/// Describes the response to a refused request, for example
/// `status 403, JSON and HTML, 1 header field, documentation at https://example.com/limits`.
pub(crate) fn refusal(refusal: &RefusalSettings) -> String {
    let mut parts = Vec::new();
    if let Some(status) = refusal.status {
        parts.push(format!("status {status}"));
    }
    let bodies = [("JSON", &refusal.json), ("HTML", &refusal.html), ("text", &refusal.text)];
    let bodies: Vec<_> = bodies.iter().filter(|(_, body)| body.is_some()).map(|it| it.0).collect();
    if !bodies.is_empty() {
        parts.push(format!("{} of the policy", bodies.join(" and ")));
    }
    match refusal.headers.len() {
        0 => {}
        1 => parts.push("1 header field".to_owned()),
        several => parts.push(format!("{several} header fields")),
    }
    if let Some(address) = &refusal.documentation {
        parts.push(format!("documentation at {address}"));
    }
    if parts.is_empty() { "problem details".to_owned() } else { parts.join(", ") }
}

/// Returns the names of the header profiles as a policy file writes them.
pub(crate) fn profiles(answers: &ResponseSettings) -> String {
    let name = |profile: &HeaderProfile| match profile {
        HeaderProfile::GitHub => "github",
        HeaderProfile::Ietf => "ietf",
        HeaderProfile::Draft03 => "draft-03",
        HeaderProfile::ThreeFields => "three-fields",
    };
    match answers.headers.as_slice() {
        [] => "none".to_owned(),
        profiles => profiles.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}
