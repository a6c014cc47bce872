//! The functions that the listener calls for the requests of administrators.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::Value;
use tokio::sync::Semaphore;
use tollgate::model::{Limit, Subject};

use crate::metrics::Exposition;

/// A function that writes the metrics.
#[derive(Clone)]
pub struct Metrics(pub(super) Arc<dyn Fn(&mut Exposition) + Send + Sync>);

impl Metrics {
    /// Creates a function that calls `write` for each request. `write` must not block, because it
    /// runs within the request. `write` should only read state that is in memory.
    pub fn new(write: impl Fn(&mut Exposition) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// A function that reloads the policy. The function returns the result as JSON, or the reason why
/// the current policy was not replaced.
#[derive(Clone)]
pub struct Reload(pub(super) Arc<dyn Fn() -> Result<Value, String> + Send + Sync>);

impl Reload {
    /// Creates a function that calls `reload` for each request. `reload` may read files.
    pub fn new(reload: impl Fn() -> Result<Value, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reload))
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reload")
    }
}

/// A function that returns the status of the node as a JSON document.
#[derive(Clone)]
pub struct Status(Arc<dyn Fn() -> Value + Send + Sync>);

impl Status {
    /// Creates a function that calls `status` for each request. `status` must not block, because it
    /// runs within the request. `status` should only read state that is in memory.
    pub fn new(status: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        Self(Arc::new(status))
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

/// The number of simulations that run at once. Each simulation occupies a processor that decisions
/// cannot use during that time.
const AT_ONCE: usize = 1;

/// A function that evaluates the current policy, and optionally another policy, on the requests of
/// an access log or on this node's own requests.
#[derive(Clone)]
pub struct Simulate {
    pub(super) simulate: Arc<Run>,
    pub(super) permits: Arc<Semaphore>,
}

pub(super) type Run = dyn Fn(Option<Bytes>, Option<&str>) -> Result<Value, String> + Send + Sync;

impl Simulate {
    /// Creates a function that calls `simulate` for each request. The first argument of `simulate`
    /// is the content of an access log, or `None` for the node's own requests. The second argument
    /// is the text of another policy to evaluate, or `None` for only the current policy. `simulate`
    /// may take long, and has to limit its own time and memory.
    pub fn new(
        simulate: impl Fn(Option<Bytes>, Option<&str>) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self { simulate: Arc::new(simulate), permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl fmt::Debug for Simulate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulate")
    }
}

/// A function that lists the subjects that a store keeps in clear text.
#[derive(Clone)]
pub struct Subjects(pub(super) Arc<List>);

pub(super) type List = dyn Fn(SubjectsRequest) -> Pin<Box<Listing>> + Send + Sync;
type Listing = dyn Future<Output = Result<Option<SubjectsPage>, SubjectsError>> + Send;

/// A query for subjects.
#[derive(Clone, Debug)]
pub struct SubjectsRequest {
    /// The limit that counts the subjects.
    pub limit: Arc<Limit>,
    /// The first dimension that the limit counts by.
    pub dimension: Box<str>,
    /// The prefix of the values of that dimension.
    pub prefix: Box<str>,
    /// The value of [`next`](SubjectsPage::next) in the previous page. `None` requests the first
    /// page.
    pub after: Option<Box<str>>,
}

/// One page of subjects.
#[derive(Clone, Debug, Default)]
pub struct SubjectsPage {
    /// The subjects, in the order of the store.
    pub subjects: Vec<Subject>,
    /// The value of [`after`](SubjectsRequest::after) for the next page. `None` if this page is the
    /// last one.
    pub next: Option<String>,
}

/// The reason why a page of subjects cannot be returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectsError {
    /// The value of [`after`](SubjectsRequest::after) is invalid.
    After,
    /// The store failed with this error.
    Store(String),
}

impl Subjects {
    /// Creates a function that calls `list` for each request. `list` has to return a page within a
    /// bounded time, or `None` if the store has no subjects in clear text.
    pub fn new<F>(list: impl Fn(SubjectsRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Option<SubjectsPage>, SubjectsError>> + Send + 'static,
    {
        Self(Arc::new(move |wanted| Box::pin(list(wanted))))
    }
}

impl fmt::Debug for Subjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subjects")
    }
}
