//! Metrics for Prometheus, in its text format.
//!
//! All values are read when the page is requested, and the page is [written](Exposition) directly
//! from the counters. Therefore no registry of metrics has to follow changes of the policy.

mod exposition;

pub use exposition::{Exposition, Family, Kind, MEDIA_TYPE};
