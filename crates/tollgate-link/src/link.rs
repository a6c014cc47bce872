//! The link, which gives callers the connection and the state of a server.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::circuit_breaker::{CircuitBreaker, CircuitState};
use crate::connector::Connector;
use crate::health::Health;
use crate::last_error::LastError;
use crate::limits::LinkLimits;
use crate::phase::Phase;
use crate::supervisor::Supervisor;

/// A link to one server. The link keeps a verified connection `C` open, and replaces the connection
/// when it is lost. `E` is the error of a failed attempt. Dropping the link closes the connection.
pub struct Link<C, E> {
    phase: watch::Receiver<Phase<C>>,
    health: Arc<Health>,
    last_error: LastError<E>,
    supervisor: AbortHandle,
}

impl<C: Send + Sync + 'static, E: Send + 'static> Link<C, E> {
    /// Creates a link and starts to connect. The link stores errors in `last_error`. This function
    /// needs a tokio runtime.
    pub fn start(
        connector: impl Connector<Connection = C, Error = E>,
        limits: LinkLimits,
        last_error: LastError<E>,
    ) -> Self {
        let (sender, phase) = watch::channel(Phase::Connecting);
        let health = Arc::new(Health::new(limits.misses));
        let supervisor =
            Supervisor::new(connector, limits, sender, Arc::clone(&health), last_error.clone());
        let supervisor = tokio::spawn(supervisor.run()).abort_handle();
        Self { phase, health, last_error, supervisor }
    }

    /// Waits, without a time limit, until there is a connection and the circuit is closed.
    pub async fn up(&self) {
        // Callers open the circuit before the supervisor has dropped the connection.
        let serves = |phase: &Phase<C>| {
            matches!(phase, Phase::Up(_)) && self.circuit().circuit_state() == CircuitState::Closed
        };
        // An error means that the supervisor has ended, which happens when the link is dropped.
        let _ = self.phases().wait_for(serves).await;
    }
}

impl<C, E> Link<C, E> {
    /// Returns a receiver of the link's phases, to read the current phase and to wait for a change.
    #[must_use]
    pub fn phases(&self) -> watch::Receiver<Phase<C>> {
        self.phase.clone()
    }

    /// Returns the current phase.
    #[must_use]
    pub fn phase(&self) -> Phase<C> {
        self.phase.borrow().clone()
    }

    /// Returns the current connection, or `None` if there is no connection.
    #[must_use]
    pub fn connection(&self) -> Option<Arc<C>> {
        match self.phase() {
            Phase::Up(connection) => Some(connection),
            Phase::Connecting | Phase::Down => None,
        }
    }

    /// Returns the server's health, to which callers report faults and missed deadlines.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Returns the circuit breaker of the server.
    #[must_use]
    pub fn circuit(&self) -> &CircuitBreaker {
        self.health.circuit()
    }

    /// Returns the reason why the last attempt to connect failed or the last connection was lost.
    /// Returns `None` if neither has happened.
    #[must_use]
    pub fn last_error(&self) -> Option<E>
    where
        E: Clone,
    {
        self.last_error.get()
    }
}

impl<C, E> Drop for Link<C, E> {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

impl<C: fmt::Debug, E: fmt::Debug> fmt::Debug for Link<C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("phase", &*self.phase.borrow())
            .field("health", &self.health)
            .field("last_error", &self.last_error)
            .finish_non_exhaustive()
    }
}
