//! `GET /v1/status`: how what is behind a listener stands, for those who run it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::app::App;
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;

/// Tells how what is behind a listener stands, as a JSON document.
#[derive(Clone)]
pub struct Status(Arc<dyn Fn() -> Value + Send + Sync>);

impl Status {
    /// As `tell` says whenever it is asked. It is asked on the request's way: it reads what is
    /// known and waits for nothing.
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
    /// How it stands, if this listener tells.
    pub(super) fn status(&self) -> Answer {
        match &self.options.status {
            Some(status) => Ok(json::write(&status.read())?),
            None => Err(Problem::new(Kind::NotFound, "this listener tells no status")),
        }
    }
}
