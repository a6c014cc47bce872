//! Reports of callers about the server of a link.

use tokio::sync::watch;

use crate::circuit_breaker::{CircuitBreaker, Progress};

/// The reason why a connection can no longer be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection was closed.
    Ended,
    /// The server reports that it cannot serve, for example because it is read-only.
    Unfit,
    /// The server does not answer.
    Unresponsive,
}

/// The circuit breaker of a link's server, and the faults that callers report to its supervisor.
#[derive(Debug)]
pub struct Health {
    circuit: CircuitBreaker,
    faults: watch::Sender<Option<FaultReport>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultReport {
    pub(crate) generation: u64,
    pub(crate) fault: Fault,
}

impl Health {
    /// Creates the health of a server that has no connection yet. The circuit opens after `misses`
    /// consecutive missed deadlines.
    #[must_use]
    pub fn new(misses: u32) -> Self {
        Self { circuit: CircuitBreaker::new(misses), faults: watch::Sender::new(None) }
    }

    /// Returns the circuit breaker of the server.
    #[must_use]
    pub const fn circuit(&self) -> &CircuitBreaker {
        &self.circuit
    }

    /// Reports to the supervisor that the connection with the number `generation` can no longer be
    /// used because of `fault`.
    pub fn report(&self, generation: u64, fault: Fault) {
        self.faults.send_if_modified(|report| {
            let is_new = report.is_none_or(|known| known.generation < generation);
            if is_new {
                *report = Some(FaultReport { generation, fault });
            }
            is_new
        });
    }

    /// Reports that a call missed its deadline. `submitted` is the server's progress when the
    /// call was submitted.
    pub fn record_miss(&self, submitted: Progress) {
        if self.circuit.record_miss(submitted) {
            self.report(submitted.generation(), Fault::Unresponsive);
        }
    }

    pub(crate) fn reports(&self) -> watch::Receiver<Option<FaultReport>> {
        self.faults.subscribe()
    }
}
