//! `GET /v1/status`: the status of the node and its store, for administrators.

use super::app::App;
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;

impl<S> App<S> {
    /// Returns the status, if this listener serves it.
    pub(super) fn status(&self) -> Answer {
        match &self.options.status {
            Some(status) => Ok(json::write(&status.read())?),
            None => Err(Problem::new(Kind::NotFound, "this listener serves no status")),
        }
    }
}
