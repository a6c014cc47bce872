//! `GET /metrics`: numbers for Prometheus, for those who run it.

use std::fmt;
use std::sync::Arc;

use axum::http::StatusCode;

use super::app::App;
use super::problem::{Kind, Problem};
use super::respond::{self, Response};
use crate::metrics::{Exposition, MEDIA_TYPE};

/// Writes what is counted.
#[derive(Clone)]
pub struct Metrics(Arc<dyn Fn(&mut Exposition) + Send + Sync>);

impl Metrics {
    /// As `write` does whenever it is asked. It is asked on the request's way: it reads what is
    /// known and waits for nothing.
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
    /// What is counted, if this listener tells.
    pub(super) fn metrics(&self) -> Result<Response, Problem> {
        let Some(Metrics(write)) = &self.options.metrics else {
            return Err(Problem::new(Kind::NotFound, "this listener tells no metrics"));
        };
        let mut page = Exposition::default();
        write(&mut page);
        Ok(respond::of(StatusCode::OK, MEDIA_TYPE, page.into_text()))
    }
}
