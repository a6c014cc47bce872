//! The upstreams of a request: which group of servers serves its path, and which address of the
//! group receives it.

mod endpoint;
mod group;
mod health;
mod pick;
mod router;

pub(crate) use group::{Attempt, Exchange};
pub(crate) use router::Router;
