//! `GET /v1/history`: the decisions of the last hour, for administrators.

use super::app::App;
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;

impl<S> App<S> {
    /// Returns the decisions of the last hour, if this listener serves them.
    pub(super) fn history(&self) -> Answer {
        match &self.options.history {
            Some(history) => Ok(json::write(&history.response())?),
            None => Err(Problem::new(Kind::NotFound, "this listener serves no history")),
        }
    }
}
