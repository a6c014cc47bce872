//! The part of a link that knows the protocol.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::health::{Fault, Health};

/// Opens, verifies and watches the connections of a link.
pub trait Connector: Send + 'static {
    /// A verified connection. A link has one at a time.
    type Connection: Send + Sync + 'static;
    /// What the server reported while the connection was verified.
    type Report: Send;
    /// The reason why a connection could not be made, or was lost.
    type Error: Send + 'static;

    /// Tries once to connect. The connection is the `generation`th of its link. Whatever uses it
    /// reports missed deadlines to `health`.
    ///
    /// Ends within a time limit of its own; callers wait for at most
    /// [`LinkLimits::seek`](crate::LinkLimits::seek).
    fn connect(
        &mut self,
        generation: u64,
        health: &Arc<Health>,
    ) -> impl Future<Output = Result<(Self::Connection, Self::Report), Self::Error>> + Send;

    /// Prepares for a new connection. Called before the first caller can use it.
    fn begin(&mut self, connection: &Self::Connection, report: &Self::Report) {
        let _ = (connection, report);
    }

    /// Waits until `connection` is closed.
    fn ended(connection: &Self::Connection) -> impl Future<Output = ()> + Send;

    /// Checks `connection` periodically, and returns the first reason not to use it any more.
    fn watch(
        &mut self,
        connection: &Self::Connection,
        report: Self::Report,
    ) -> impl Future<Output = (Fault, Self::Error)> + Send;

    /// Ends the use of `connection`. Callers may still hold it.
    fn end(&mut self, connection: &Self::Connection);

    /// Returns the error that describes `fault`, which a caller reported.
    fn error(&self, connection: &Self::Connection, fault: Fault) -> Self::Error;

    /// Waits for a change that makes another attempt worthwhile at once.
    fn changed(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Returns a random number for the delay before the next attempt; in a simulation, one of its
    /// seed.
    fn draw(&mut self) -> u64 {
        #[cfg(feature = "simulation")]
        if let Some(number) = crate::simulation::draw() {
            return number;
        }
        RandomState::new().hash_one(0_u8)
    }
}
