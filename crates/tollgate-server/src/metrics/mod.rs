//! Metrics for Prometheus, in its text format.
//!
//! The page is [written](Exposition) from the current values of the counters when a client requests
//! the page. Therefore no registry of metrics has to follow changes of the policy.

mod exposition;

pub use exposition::{Exposition, Family, Kind, MEDIA_TYPE};
