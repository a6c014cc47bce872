//! `GET /metrics`: metrics for Prometheus, for administrators.

use axum::http::StatusCode;

use super::app::App;
use super::callbacks::Metrics;
use super::problem::{Kind, Problem};
use super::respond::{self, Response};
use crate::metrics::{Exposition, MEDIA_TYPE};

impl<S> App<S> {
    /// Returns the metrics, if this listener serves them.
    pub(super) fn metrics(&self) -> Result<Response, Problem> {
        let Some(Metrics(write)) = &self.options.metrics else {
            return Err(Problem::new(Kind::NotFound, "this listener serves no metrics"));
        };
        let mut page = Exposition::default();
        write(&mut page);
        Ok(respond::of(StatusCode::OK, MEDIA_TYPE, page.into_text()))
    }
}
