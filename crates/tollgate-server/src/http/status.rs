//! `GET /v1/status`: the status of the node and its store, for administrators.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::app::App;
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;

/// A function that returns the status of the node as a JSON document.
#[derive(Clone)]
pub struct Status(Arc<dyn Fn() -> Value + Send + Sync>);

impl Status {
    /// Calls `tell` for each request. It must not block: it runs within the request, so it should
    /// only read known state.
    pub fn new(tell: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn read(&self) -> Value {
        (self.0)()
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Status")
    }
}

impl<S> App<S> {
    /// Returns the status, if this listener serves it.
    pub(super) fn status(&self) -> Answer {
        match &self.options.status {
            Some(status) => Ok(json::write(&status.read())?),
            None => Err(Problem::new(Kind::NotFound, "this listener serves no status")),
        }
    }
}
