//! One server, its connections, and their supervisors.

mod connection;
mod error;
mod loss_detector;
mod server;
mod supervisor;

pub(crate) use connection::{CallError, Connection};
pub use error::LinkError;
pub use loss_detector::Losses;
pub(crate) use loss_detector::TIME_UNCERTAINTY;
pub(crate) use server::Server;
pub use supervisor::LinkLimits;
