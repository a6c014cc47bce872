//! `GET /v1/audit`: what administrators changed, for those who run it.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::HeaderMap;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tollgate::core::{KeyedHash, Store};

use super::app::App;
use super::auth::bearer_token;
use super::json;
use super::respond::Answer;

/// The changes that are remembered; the log has all of them.
pub const MAX_AUDITED: usize = 1_000;

/// The most bytes of a request's id that are kept.
const MAX_REQUEST_ID: usize = 128;

/// Who changes something.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    actor: Box<str>,
    request_id: Option<Box<str>>,
}

/// What was changed lately.
#[derive(Debug, Default)]
pub(super) struct Audit(Mutex<VecDeque<Arc<Entry>>>);

/// One change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub(super) struct Entry {
    /// Milliseconds since the Unix epoch.
    at_ms: u64,
    /// The token that was shown: `token ` and eight digits of its keyed hash, or `anonymous` at a listener
    /// without tokens.
    actor: Box<str>,
    /// What was done.
    action: &'static str,
    /// What it was done to.
    target: Value,
    /// How it stood before.
    before: Value,
    /// How it stands since.
    after: Value,
    /// The request's own `x-request-id`.
    request_id: Option<Box<str>>,
}

/// The changes of late.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditResponse {
    /// The last one first. Those before this process began, and any but the last 1,000, are in
    /// the log alone.
    entries: Vec<Arc<Entry>>,
}

/// A change that was made.
pub(super) struct AuditEvent {
    pub(super) action: &'static str,
    pub(super) target: Value,
    pub(super) before: Value,
    pub(super) after: Value,
}

impl<S: Store> App<S> {
    /// What was changed here lately.
    pub(super) fn audit(&self) -> Answer {
        let entries = self.audit.0.lock().iter().rev().cloned().collect();
        Ok(json::write(&AuditResponse { entries })?)
    }

    /// Remembers a change, and tells it to the log in one line.
    pub(super) fn note(&self, actor: &Actor, event: AuditEvent) {
        let AuditEvent { action, target, before, after } = event;
        let at_ms = self.limiter.now().as_millis();
        let Actor { actor, request_id } = actor.clone();
        let message = request_id.as_deref().unwrap_or_default();
        tracing::info!(actor = &*actor, action, %target, %before, %after, request_id = message, "audit");
        let entry = Entry { at_ms, actor, action, target, before, after, request_id };
        let mut entries = self.audit.0.lock();
        if entries.len() == MAX_AUDITED {
            entries.pop_front();
        }
        entries.push_back(Arc::new(entry));
    }

    /// Who asks with these `headers`.
    pub(super) fn actor(&self, headers: &HeaderMap) -> Actor {
        let actor = match bearer_token(headers) {
            None => "anonymous".into(),
            Some(token) => {
                let [a, b, c, d, ..] = self.limiter.key().hash(token);
                format!("token {a:02x}{b:02x}{c:02x}{d:02x}").into()
            }
        };
        let id = headers.get("x-request-id").and_then(|id| id.to_str().ok());
        let request_id = id.filter(|id| id.len() <= MAX_REQUEST_ID).map(Into::into);
        Actor { actor, request_id }
    }
}
