//! Numbers for Prometheus: their text, and how long decisions took.
//!
//! All that is told is read when it is asked for, so there is no registry to keep in step with a
//! policy that changes: a page is [written](Exposition) from whatever counts.

mod exposition;
mod histogram;

pub use exposition::{Exposition, Family, Kind, MEDIA_TYPE};
pub use histogram::{BUCKETS, Histogram, Observed};
