//! Metrics for Prometheus, in its text format.
//!
//! All values are read when the page is requested, so there is no registry that has to follow
//! policy changes: a page is [written](Exposition) directly from the counters.

mod exposition;

pub use exposition::{Exposition, Family, Kind, MEDIA_TYPE};
