//! Numbers for Prometheus: their text.
//!
//! All that is told is read when it is asked for, so there is no registry to keep in step with a
//! policy that changes: a page is [written](Exposition) from whatever counts.

mod exposition;

pub use exposition::{Exposition, Family, Kind, MEDIA_TYPE};
