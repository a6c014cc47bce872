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
    /// What it is about: a server, a shard, or the store.
    pub(crate) about: String,
    /// What is so.
    pub(crate) what: String,
    /// What to do; nothing where nothing is to be done.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    /// Something that is as it should be.
    pub(crate) fn ok(check: &'static str, what: impl Into<String>) -> Self {
        let (about, what) = (String::new(), what.into());
        Self { check, level: Level::Ok, about, what, remedy: None }
    }

    /// Something to do.
    pub(crate) fn of(
        check: &'static str,
        level: Level,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (what, remedy) = (what.into(), Some(remedy.into()));
        Self { check, level, about: String::new(), what, remedy }
    }

    /// The same, told of `about`.
    pub(crate) fn about(self, about: &str) -> Self {
        Self { about: about.to_owned(), ..self }
    }
}
