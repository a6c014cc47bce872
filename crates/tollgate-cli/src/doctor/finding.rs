//! What was found.

use serde::Serialize;

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// It is as it should be.
    Ok,
    /// It could be better.
    Advice,
    /// It makes limits wrong once something else fails.
    Warning,
    /// It makes limits wrong, or decisions fail, now.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Which check it is of, such as `eviction`.
    pub(crate) check: &'static str,
    /// How bad it is.
    pub(crate) level: Level,
    /// The server or shard that was checked, or the store.
    pub(crate) target: String,
    /// What the check found.
    pub(crate) message: String,
    /// What to do; nothing where nothing is to be done.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    /// Something that is as it should be.
    pub(crate) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        let (target, message) = (String::new(), message.into());
        Self { check, level: Level::Ok, target, message, remedy: None }
    }

    /// Something to do.
    pub(crate) fn of(
        check: &'static str,
        level: Level,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (message, remedy) = (message.into(), Some(remedy.into()));
        Self { check, level, target: String::new(), message, remedy }
    }

    /// The same finding for `target`.
    pub(crate) fn about(self, target: &str) -> Self {
        Self { target: target.to_owned(), ..self }
    }
}
