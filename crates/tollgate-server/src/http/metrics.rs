//! `GET /metrics`: metrics for Prometheus, for administrators.

use std::fmt;
use std::sync::Arc;

use axum::http::StatusCode;

use super::app::App;
use super::problem::{Kind, Problem};
use super::respond::{self, Response};
use crate::metrics::{Exposition, MEDIA_TYPE};

/// A function that writes the metrics.
#[derive(Clone)]
pub struct Metrics(Arc<dyn Fn(&mut Exposition) + Send + Sync>);

impl Metrics {
    /// Calls `write` for each request. It must not block: it runs within the request, so it should
    /// only read known state.
    pub fn new(write: impl Fn(&mut Exposition) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

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
