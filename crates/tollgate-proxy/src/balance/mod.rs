//! Selection of the server for a request: first the group of servers that the routes select for the
//! request, then one address of that group.

mod endpoint;
mod health;
mod pick;
mod router;

pub(crate) use router::{Attempt, Router};
