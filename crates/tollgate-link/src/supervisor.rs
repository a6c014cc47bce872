//! The supervisor, which keeps one verified connection to a server and replaces a lost connection.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::backoff::probe_delay;
use crate::connector::Connector;
use crate::health::{Fault, FaultReport, Health};
use crate::last_error::LastError;
use crate::limits::LinkLimits;
use crate::phase::Phase;

/// The task that keeps the connection of a link.
pub(crate) struct Supervisor<C: Connector> {
    connector: C,
    limits: LinkLimits,
    phase: watch::Sender<Phase<C::Connection>>,
    health: Arc<Health>,
    reports: watch::Receiver<Option<FaultReport>>,
    last_error: LastError<C::Error>,
    generation: u64,
}

impl<C: Connector> Supervisor<C> {
    pub(crate) fn new(
        connector: C,
        limits: LinkLimits,
        phase: watch::Sender<Phase<C::Connection>>,
        health: Arc<Health>,
        last_error: LastError<C::Error>,
    ) -> Self {
        let reports = health.reports();
        Self { connector, limits, phase, health, reports, last_error, generation: 0 }
    }

    pub(crate) async fn run(mut self) {
        let mut failed: u32 = 0;
        loop {
            match self.seek().await {
                Ok((connection, report)) => {
                    let since = Instant::now();
                    let fault = self.serve(connection, report).await;
                    if since.elapsed() < self.limits.proven_after {
                        self.stop();
                    } else {
                        failed = 0;
                        match fault {
                            // A frozen server answers no caller, so callers do not wait for a new
                            // connection to this server.
                            Fault::Unresponsive => self.stop(),
                            Fault::Ended | Fault::Unfit => {
                                self.wait();
                                continue;
                            }
                        }
                    }
                }
                Err(error) => {
                    self.last_error.set(error);
                    self.stop();
                }
            }
            let delay = probe_delay(failed, self.connector.draw());
            tokio::select! {
                biased;
                () = sleep(delay) => {}
                () = self.connector.changed() => {}
            }
            failed = failed.saturating_add(1);
        }
    }

    /// Makes one attempt to connect. Callers wait for at most `LinkLimits::seek`.
    async fn seek(&mut self) -> Result<(C::Connection, C::Report), C::Error> {
        self.generation += 1;
        let attempt = self.connector.connect(self.generation, &self.health);
        tokio::pin!(attempt);
        tokio::select! {
            biased;
            found = &mut attempt => return found,
            () = sleep(self.limits.seek) => shut(&self.phase, &self.health),
        }
        attempt.await
    }

    /// Lets callers use `connection` until the connection fails, and returns the reason for the
    /// failure.
    async fn serve(&mut self, connection: C::Connection, report: C::Report) -> Fault {
        let connection = Arc::new(connection);
        self.connector.begin(&connection, &report);
        let generation = self.generation;
        self.health.circuit().close(generation);
        self.phase.send_replace(Phase::Up(Arc::clone(&connection)));
        let reported = self
            .reports
            .wait_for(|report| report.is_some_and(|report| report.generation == generation));
        let (fault, error) = tokio::select! {
            biased;
            () = C::ended(&connection) => (Fault::Ended, None),
            Ok(report) = reported => (report.map_or(Fault::Ended, |report| report.fault), None),
            (fault, error) = self.connector.watch(&connection, report) => (fault, Some(error)),
        };
        self.connector.end(&connection);
        let error = error.unwrap_or_else(|| self.connector.error(&connection, fault));
        self.last_error.set(error);
        fault
    }

    fn stop(&self) {
        shut(&self.phase, &self.health);
    }

    fn wait(&self) {
        self.health.circuit().seek();
        self.phase.send_replace(Phase::Connecting);
    }
}

fn shut<T>(phase: &watch::Sender<Phase<T>>, health: &Health) {
    health.circuit().open();
    phase.send_replace(Phase::Down);
}

#[cfg(test)]
mod tests;
