//! The changes that administrators made, in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The most changes that are kept in memory. The log contains all changes.
pub const MAX_AUDITED: usize = 1_000;

/// The most recent changes.
#[derive(Debug, Default)]
pub(super) struct AuditLog(Mutex<VecDeque<Arc<Entry>>>);

/// One change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub(super) struct Entry {
    /// Milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
    /// The administrator's token: `token ` and eight digits of its keyed hash, or `anonymous` at a
    /// listener without tokens.
    pub(super) actor: Box<str>,
    /// The action.
    pub(super) action: &'static str,
    /// The object that was changed.
    pub(super) target: Value,
    /// The state of the target before the change.
    pub(super) before: Value,
    /// The state of the target after the change.
    pub(super) after: Value,
    /// The `x-request-id` of the request.
    pub(super) request_id: Option<Box<str>>,
}

impl AuditLog {
    /// Returns the changes, latest first.
    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        self.0.lock().iter().rev().cloned().collect()
    }

    /// Adds a change. Removes the oldest change if there are already [`MAX_AUDITED`].
    pub(super) fn push(&self, entry: Entry) {
        let mut entries = self.0.lock();
        if entries.len() == MAX_AUDITED {
            entries.pop_front();
        }
        entries.push_back(Arc::new(entry));
    }
}
