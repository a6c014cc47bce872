//! One server, a few connections to it, and who looks after them.

mod connection;
mod error;
mod observed;
mod server;
mod supervisor;

pub(crate) use connection::{Connection, Unanswered};
pub use error::LinkError;
pub use observed::Losses;
pub(crate) use server::Server;
pub use supervisor::LinkLimits;
