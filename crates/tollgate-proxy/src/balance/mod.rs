//! Selection of the server for a request: first the group of servers that serves the request's
//! path, then one address of that group.

mod endpoint;
mod health;
mod pick;
mod router;

pub(crate) use router::{Attempt, Exchange, Router};
