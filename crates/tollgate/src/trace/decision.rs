//! What a span tells of a decision. Names come from the policy; of subjects only their keyed hash is
//! told.

use std::fmt::Write;

use tollgate_core::key::Stored;
use tollgate_core::policy::Planned;
use tollgate_core::{KeyedHash, Standing, Subject, Verdict};

use super::span::Value;
use super::tracer::Tracer;
use super::within::{is_recording, record};
use crate::hash_key::HashKey;
use crate::limiter::{Decision, Source};

impl Tracer {
    /// Tells which limits were asked for whom, and how they stand.
    pub(crate) fn judged(&self, key: &HashKey, planned: &[Planned], verdict: &Verdict) {
        if !self.is_on() || !is_recording() {
            return;
        }
        let names = |standings: &mut dyn Iterator<Item = &Standing>| {
            Value::Texts(standings.map(|standing| standing.limit.name().into()).collect())
        };
        record("tollgate.limits", names(&mut verdict.standings.iter()));
        let subjects = planned.iter().map(|planned| hashed(&planned.subject, key).into());
        record("tollgate.subjects", Value::Texts(subjects.collect()));
        let remaining = verdict.standings.iter().map(|standing| standing.remaining);
        let whole = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
        record("tollgate.remaining", Value::Integers(remaining.map(whole).collect()));
        if !verdict.is_admitted() {
            record("tollgate.refused_by", names(&mut verdict.refusals()));
        }
    }

    /// Tells what became of the request, and by which policy.
    pub(crate) fn decided(&self, decision: &Decision) {
        if !self.is_on() || !is_recording() {
            return;
        }
        record("tollgate.verdict", if decision.is_admitted() { "admitted" } else { "refused" });
        let (source, failure) = match decision.source {
            Source::Store => ("store", None),
            Source::Remembered => ("remembered", None),
            Source::Fallback(error) => ("fallback", Some(error)),
            Source::Failure(error) => ("failure", Some(error)),
        };
        record("tollgate.source", source);
        if let Some(error) = failure {
            record("tollgate.failure", error.to_string());
        }
        record("tollgate.policy.version", decision.policy.version().to_string());
        let rules = decision.rules.iter().map(|rule| Box::from(&**rule));
        record("tollgate.rules", Value::Texts(rules.collect()));
    }
}

/// `token=#0123…, route=#4567…`, as the administration's door shows subjects that are not revealed.
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
