//! Findings of the checks.

use serde::Serialize;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Everything is in order.
    Ok,
    /// The deployment works, and could be improved.
    Advice,
    /// Limits are right now, but a further failure or an attack would make them wrong.
    Warning,
    /// Limits are already wrong, or decisions already fail.
    Problem,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The name of the check, such as `eviction`.
    pub(crate) check: &'static str,
    /// The severity of the finding.
    pub(crate) level: Level,
    /// The server or shard that was checked, or the store.
    pub(crate) target: String,
    /// The result of the check in words.
    pub(crate) message: String,
    /// The suggested action, if there is one.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    /// Creates a finding without a problem.
    pub(crate) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        let (target, message) = (String::new(), message.into());
        Self { check, level: Level::Ok, target, message, remedy: None }
    }

    /// Creates a finding with a suggested action.
    pub(crate) fn of(
        check: &'static str,
        level: Level,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (message, remedy) = (message.into(), Some(remedy.into()));
        Self { check, level, target: String::new(), message, remedy }
    }

    /// Returns this finding as a finding about `target`, the name of a server or a shard.
    pub(crate) fn about(self, target: &str) -> Self {
        Self { target: target.to_owned(), ..self }
    }
}
