//! The upstreams of a request: which group of servers serves its path, and which address of the
//! group receives it.

mod endpoint;
mod health;
mod pick;
mod router;

pub(crate) use router::{Attempt, Exchange, Router};
