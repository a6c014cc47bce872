//! `GET /v1/audit`: the changes that administrators made, for administrators.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::HeaderMap;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tollgate::model::{KeyedHash, Store};

use super::app::App;
use super::auth::bearer_token;
use super::json;
use super::respond::Answer;

/// The most changes that are kept in memory. The log contains all of them.
pub const MAX_AUDITED: usize = 1_000;

/// The most bytes of a request id that are kept.
const MAX_REQUEST_ID: usize = 128;

/// The administrator that changes something.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    actor: Box<str>,
    request_id: Option<Box<str>>,
}

/// The most recent changes.
#[derive(Debug, Default)]
pub(super) struct Audit(Mutex<VecDeque<Arc<Entry>>>);

/// One change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub(super) struct Entry {
    /// Milliseconds since the Unix epoch.
    at_ms: u64,
    /// The administrator's token: `token ` and eight digits of its keyed hash, or `anonymous` at a
    /// listener without tokens.
    actor: Box<str>,
    /// The action.
    action: &'static str,
    /// The object that was changed.
    target: Value,
    /// Its state before the change.
    before: Value,
    /// Its state after the change.
    after: Value,
    /// The `x-request-id` of the request.
    request_id: Option<Box<str>>,
}

/// The most recent changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditResponse {
    /// The changes, latest first. At most 1,000 since this process started: earlier ones are only
    /// in the log.
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
    /// Returns the most recent changes of this node.
    pub(super) fn audit(&self) -> Answer {
        let entries = self.audit.0.lock().iter().rev().cloned().collect();
        Ok(json::write(&AuditResponse { entries })?)
    }

    /// Records a change, and writes it to the log as one line.
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

    /// Returns the administrator that sent a request with these `headers`.
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
