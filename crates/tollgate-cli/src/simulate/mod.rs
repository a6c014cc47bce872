//! `tollgate simulate`: a policy tried on the requests of an access log, by the log's own clock.
//!
//! The way of one line: [`log`] → [`request`] → [`trial`] (the same limiter as in front of a service) → [`tally`] →
//! [`outcome`] → [`report`].

mod limit_text;
pub(crate) mod log;
mod outcome;
pub(crate) mod progress;
pub(crate) mod report;
mod request;
pub(crate) mod run;
mod tally;
mod trial;
mod utc;
