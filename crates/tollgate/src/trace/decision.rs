//! Records decisions in spans. Names come from the policy. Subjects are recorded only as keyed
//! hashes.

use std::fmt::Write;

use opentelemetry::{Array, StringValue, Value};
use tollgate_core::key::Stored;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, KeyedHash, LimitStatus, Subject};

use super::span::{is_recording, record};
use super::tracer::Tracer;
use crate::decision::Decision;
use crate::hash_key::HashKey;

impl Tracer {
    /// Records in the current span which limits were evaluated for which subjects, and their
    /// statuses.
    pub(crate) fn evaluated(
        &self,
        key: &HashKey,
        planned: &[PlannedCharge],
        evaluation: &Evaluation,
    ) {
        if !self.is_on() || !is_recording() {
            return;
        }
        let names = |statuses: &mut dyn Iterator<Item = &LimitStatus>| {
            texts(statuses.map(|status| status.limit.name().to_owned()))
        };
        record("tollgate.limits", names(&mut evaluation.statuses.iter()));
        let subjects = planned.iter().map(|planned| hashed(&planned.subject, key));
        record("tollgate.subjects", texts(subjects));
        let remaining = evaluation.statuses.iter().map(|status| status.remaining);
        let whole = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
        record("tollgate.remaining", Value::Array(Array::I64(remaining.map(whole).collect())));
        if !evaluation.is_admitted() {
            record("tollgate.refused_by", names(&mut evaluation.refusals()));
        }
    }

    /// Records in the current span the decision, and the version of the policy that made the
    /// decision.
    pub(crate) fn on_decision(&self, decision: &Decision) {
        if !self.is_on() || !is_recording() {
            return;
        }
        record("tollgate.decision", if decision.is_admitted() { "admitted" } else { "refused" });
        let (source, failure) = match decision.source {
            DecisionSource::Store => ("store", None),
            DecisionSource::DenyCache => ("deny_cache", None),
            DecisionSource::Overflow => ("overflow", None),
            DecisionSource::Fallback(error) => ("fallback", Some(error)),
            DecisionSource::Failure(error) => ("failure", Some(error)),
        };
        record("tollgate.source", source);
        if let Some(error) = failure {
            record("tollgate.failure", error.to_string());
        }
        record("tollgate.policy.version", decision.policy.version().to_string());
        record("tollgate.rules", texts(decision.rules.iter().map(|rule| rule.to_string())));
    }
}

fn texts(texts: impl Iterator<Item = String>) -> Value {
    Value::Array(Array::String(texts.map(StringValue::from).collect()))
}

/// Formats the subject as `token=#0123…, route=#4567…`, as the admin listener shows subjects that
/// are not revealed.
fn hashed(subject: &Subject, key: &HashKey) -> String {
    let mut text = String::new();
    for (name, stored) in subject.pairs() {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{name}=");
        let mut hex = |hash: &[u8]| {
            text.push('#');
            for byte in hash {
                let _ = write!(text, "{byte:02x}");
            }
        };
        match stored {
            Stored::Absent => text.push('-'),
            Stored::Hashed(hash) => hex(hash),
            Stored::Clear(bytes) => hex(&key.hash(bytes)),
        }
    }
    text
}
