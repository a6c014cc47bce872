//! The response to a request of Envoy's rate limit service.

use prost_types::Duration;
use tollgate::headers::{self, FieldValue, Fields};
use tollgate::model::policy::descriptors::{DescriptorOutcome, PlannedDescriptor, TimeUnit};
use tollgate::model::{Limit, LimitStatus, Millis, Policy, Timestamp};
use tollgate::refusal::Refusal;

use super::evaluation::{DescriptorEvaluation, OverallResult};
use super::metadata::metadata;
use super::proto::{
    Code, DescriptorStatus, HeaderValue, RateLimit, RateLimitRequest, RateLimitResponse, Unit,
};

/// Returns the response to `request` with the result of `evaluation`.
pub(super) fn answer(
    request: &RateLimitRequest,
    evaluation: &DescriptorEvaluation<'_>,
    policy: &Policy,
) -> RateLimitResponse {
    let status = |(index, descriptor): (usize, &PlannedDescriptor<'_>)| {
        let code = if evaluation.is_over[index] { Code::OverLimit } else { Code::Ok };
        status(evaluation.now, descriptor, evaluation.statuses[index].as_ref(), code)
    };
    let statuses = evaluation.plan.descriptors.iter().enumerate().map(status).collect();
    let (fields, raw_body) = header_fields(evaluation, policy);
    RateLimitResponse {
        overall_code: match evaluation.overall {
            OverallResult::WithinLimit => Code::Ok,
            OverallResult::OverLimit => Code::OverLimit,
        }
        .into(),
        statuses,
        response_headers_to_add: fields,
        raw_body,
        dynamic_metadata: metadata(request, evaluation),
        ..RateLimitResponse::default()
    }
}

fn status(
    now: Timestamp,
    descriptor: &PlannedDescriptor<'_>,
    limit_status: Option<&LimitStatus>,
    code: Code,
) -> DescriptorStatus {
    let status = DescriptorStatus { code: code.into(), ..DescriptorStatus::default() };
    match &descriptor.outcome {
        DescriptorOutcome::Unmatched | DescriptorOutcome::Replaced => status,
        DescriptorOutcome::Unlimited => DescriptorStatus { limit_remaining: u32::MAX, ..status },
        DescriptorOutcome::Blocked => {
            let nothing = RateLimit { name: name(descriptor), ..RateLimit::default() };
            DescriptorStatus { current_limit: Some(nothing), ..status }
        }
        DescriptorOutcome::Limited(_) => {
            let Some(limit_status) = limit_status else { return status };
            // Envoy shows its clients every limit that it receives. The limits of shadow
            // descriptors are sent too, as envoyproxy/ratelimit does.
            let limit = || limit(name(descriptor), &limit_status.limit);
            DescriptorStatus {
                current_limit: limit_status.is_visible().then(limit),
                limit_remaining: saturated(limit_status.remaining),
                duration_until_reset: Some(duration(limit_status.resets_at.since(now))),
                ..status
            }
        }
    }
}

fn name(descriptor: &PlannedDescriptor<'_>) -> String {
    descriptor.name().unwrap_or_default().to_owned()
}

/// Converts a limit to the protocol's form. The protocol has units such as a second or an hour. If
/// the window of the limit is not one of these units, the unit is sent as `UNKNOWN`, and only the
/// name of the limit describes the window.
fn limit(name: String, limit: &Limit) -> RateLimit {
    let (quota, window) = limit.quota_per_window();
    let unit = TimeUnit::of(window).map_or(Unit::Unknown, |unit| match unit {
        TimeUnit::Second => Unit::Second,
        TimeUnit::Minute => Unit::Minute,
        TimeUnit::Hour => Unit::Hour,
        TimeUnit::Day => Unit::Day,
        TimeUnit::Week => Unit::Week,
        TimeUnit::Month => Unit::Month,
        TimeUnit::Year => Unit::Year,
    });
    RateLimit { name, requests_per_unit: saturated(quota), unit: unit.into() }
}

fn saturated(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}

/// Converts a time to whole seconds, rounded up. Envoy prints only the seconds, and a client that
/// waits for this time must be admitted.
fn duration(millis: Millis) -> Duration {
    // The time is at most 2^53 ms, so the cast is exact.
    Duration { seconds: millis.as_secs_ceil() as i64, nanos: 0 }
}

/// Returns the header fields for the client's response, and the body of a refusal. The body is
/// empty if the request is not refused. Both are empty if the request is refused only because a
/// descriptor is blocked, because the statuses of the limits would then contradict the refusal.
fn header_fields(
    evaluation: &DescriptorEvaluation<'_>,
    policy: &Policy,
) -> (Vec<HeaderValue>, Vec<u8>) {
    let is_refused = evaluation.overall == OverallResult::OverLimit;
    let evaluation = &evaluation.evaluation;
    // If a blocked descriptor refuses the request, no limit has refused it. The statuses of the
    // other limits would contradict the refusal, so they are not sent.
    if is_refused == evaluation.is_admitted() {
        return (Vec::new(), Vec::new());
    }
    let mut fields = FieldList(Vec::new());
    headers::write(&policy.answers().headers, evaluation, &mut fields);
    let mut body = Vec::new();
    if is_refused {
        // A request of this protocol selects no rules, and does not contain the client's `Accept`.
        let refusal = Refusal::new(policy, &[], evaluation, None);
        fields.set("content-type", FieldValue::Text(refusal.content_type.to_owned()));
        fields.0.extend(refusal.fields().map(|(name, value)| HeaderValue {
            key: name.to_owned(),
            value: value.into_owned(),
            raw_value: Vec::new(),
        }));
        body = refusal.body.into_bytes();
    }
    (fields.0, body)
}

/// Header fields in the protocol's list form.
struct FieldList(Vec<HeaderValue>);

impl Fields for FieldList {
    fn set(&mut self, name: &'static str, value: FieldValue) {
        self.0.retain(|field| field.key != name);
        self.add(name, value);
    }

    fn add(&mut self, name: &'static str, value: FieldValue) {
        let value = match value {
            FieldValue::Number(number) => number.to_string(),
            FieldValue::Text(text) => text,
        };
        self.0.push(HeaderValue { key: name.to_owned(), value, raw_value: Vec::new() });
    }
}
