//! One server and its connections.

mod connection;
mod connector;
mod error;
mod loss_detector;
mod server;

pub(crate) use connection::{CallError, Connection};
pub use error::LinkError;
pub use loss_detector::Losses;
pub(crate) use loss_detector::TIME_UNCERTAINTY;
pub(crate) use server::Server;
