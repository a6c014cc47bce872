//! `tollgate simulate`: evaluates a policy on the requests of an access log, with the log's own
//! clock.
//!
//! The steps for a line: [`log`] → [`request`] → [`trial`] (the same limiter as in a proxy) →
//! [`tally`] → [`outcome`] → [`report`].

mod limit_text;
pub(crate) mod log;
pub(crate) mod outcome;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod run;
mod tally;
mod trial;
pub(crate) mod utc;
