//! `GET /v1/audit`: the changes that administrators made, for administrators.

use std::sync::Arc;

use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tollgate::model::{KeyedHash, Store};
use tollgate::trace;

use super::app::App;
use super::audit_log::Entry;
use super::auth::bearer_token;
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;

/// The most bytes of a request id that are kept.
const MAX_REQUEST_ID: usize = 128;

/// The administrator that changes something.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    actor: Box<str>,
    request_id: Option<Box<str>>,
}

/// The most recent changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditResponse {
    /// The changes since this process started, latest first. At most 1,000: earlier changes are
    /// only in the log.
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
        Ok(json::write(&AuditResponse { entries: self.audit_log.entries() })?)
    }

    /// Records a change, and writes it to the log as one line.
    pub(super) fn note(&self, actor: &Actor, event: AuditEvent) {
        let AuditEvent { action, target, before, after } = event;
        let at_ms = self.limiter.now().as_millis();
        let Actor { actor, request_id } = actor.clone();
        let message = request_id.as_deref().unwrap_or_default();
        tracing::info!(actor = &*actor, action, %target, %before, %after, request_id = message, "audit");
        self.audit_log.push(Entry { at_ms, actor, action, target, before, after, request_id });
    }

    /// Makes a change and its audit entry, in a task of their own. If the administrator
    /// disconnects, the task still completes both, and a process that stops waits for it. The spans
    /// of the task belong to the trace of the caller.
    pub(super) async fn in_own_task(
        &self,
        change: impl Future<Output = Answer> + Send + 'static,
    ) -> Answer {
        let made = self.limiter.spawn(trace::instrument(change)).await;
        made.unwrap_or_else(|error| Err(Problem::new(Kind::Internal, error.to_string())))
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
