//! Subjects that the application reads from requests.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;

/// Reads the value of a subject from a request.
pub(crate) type ReadSubject = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

/// A subject that the application reads.
#[derive(Clone)]
pub(crate) struct ApplicationSubject {
    pub(crate) name: Arc<str>,
    pub(crate) read: ReadSubject,
}

impl fmt::Debug for ApplicationSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}
