//! Subjects that functions of the application read from requests.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;

/// A function of the application that reads the value of a subject from a request. Returns `None`
/// if the request has no value.
pub(crate) type ReadSubject = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

/// A subject with values that a function of the application reads from requests.
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
