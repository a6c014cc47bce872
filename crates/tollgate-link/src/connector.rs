//! The interface that a store implements to connect a link to its servers.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::health::{Fault, Health};

/// Opens, verifies and monitors the connections of a link.
pub trait Connector: Send + 'static {
    /// A verified connection. A link has at most one connection at a time.
    type Connection: Send + Sync + 'static;
    /// The data that the server reported while the connection was verified.
    type Report: Send;
    /// The reason why a connection could not be opened, or was lost.
    type Error: Send + 'static;

    /// Makes one attempt to connect. `generation` is the number of the new connection in its link.
    /// The users of the connection report missed deadlines to `health`.
    ///
    /// An implementation must complete within its own time limit. Callers wait for an attempt for
    /// at most [`LinkLimits::seek`](crate::LinkLimits::seek).
    fn connect(
        &mut self,
        generation: u64,
        health: &Arc<Health>,
    ) -> impl Future<Output = Result<(Self::Connection, Self::Report), Self::Error>> + Send;

    /// Prepares for the use of a new connection. The supervisor calls this method before the first
    /// caller can use the connection.
    fn begin(&mut self, connection: &Self::Connection, report: &Self::Report) {
        let _ = (connection, report);
    }

    /// Waits until `connection` is closed.
    fn ended(connection: &Self::Connection) -> impl Future<Output = ()> + Send;

    /// Checks `connection` periodically. The future completes with the reason when the connection
    /// must not be used any more.
    fn watch(
        &mut self,
        connection: &Self::Connection,
        report: Self::Report,
    ) -> impl Future<Output = (Fault, Self::Error)> + Send;

    /// Releases `connection`, which was closed or must not be used any more. An implementation can
    /// close the connection or record the end of its use. Callers may still have references to the
    /// connection.
    fn end(&mut self, connection: &Self::Connection);

    /// Returns the error that describes why `connection` can no longer be used. `fault` is the
    /// reason that a caller reported, or [`Fault::Ended`] if the connection was closed.
    fn error(&self, connection: &Self::Connection, fault: Fault) -> Self::Error;

    /// Waits for a change after which the link should try to connect at once, without waiting for
    /// the rest of the delay.
    fn changed(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Returns a random number for the delay before the next attempt. In a simulation, the number
    /// comes from the seed of the simulation.
    fn draw(&mut self) -> u64 {
        #[cfg(feature = "simulation")]
        if let Some(number) = crate::simulation::draw() {
            return number;
        }
        RandomState::new().hash_one(0_u8)
    }
}
