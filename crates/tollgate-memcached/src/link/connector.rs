//! Opens, verifies and watches connections to a server.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{UnixStream, lookup_host};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tollgate_link::{Connector, Fault, Health, LinkLimits, connect_any};

use super::connection::{CallError, Connection};
use super::error::LinkError;
use super::loss_detector::LossDetector;
use crate::address::Address;
use crate::wire::{Command, Reply};

/// A key that no item has, for a test read.
const NOTHING: &[u8] = b"tg1";

/// Opens the connections to one server. All connections report the server's statistics to one loss
/// detector.
pub(super) struct ServerConnector {
    pub(super) address: Address,
    pub(super) limits: LinkLimits,
    pub(super) observed: Arc<LossDetector>,
    #[cfg(feature = "simulation")]
    pub(super) network: tollgate_link::simulation::CapturedNetwork,
}

impl Connector for ServerConnector {
    type Connection = Connection;
    type Report = ();
    type Error = LinkError;

    async fn connect(
        &mut self,
        _: u64,
        health: &Arc<Health>,
    ) -> Result<(Connection, ()), LinkError> {
        let connect = self.limits.connect;
        let slow = || LinkError::Slow { address: self.address.clone(), within: connect };
        let opened = timeout(connect, self.open()).await.map_err(|_| slow())?;
        let stream = opened.map_err(|error| LinkError::connect(&self.address, &error))?;
        let connection = Connection::start(stream, Arc::clone(health));
        self.prove(&connection).await?;
        Ok((connection, ()))
    }

    async fn ended(connection: &Connection) {
        connection.ended().await;
    }

    async fn watch(&mut self, connection: &Connection, (): ()) -> (Fault, LinkError) {
        (Fault::Unresponsive, self.beats(connection).await)
    }

    fn end(&mut self, connection: &Connection) {
        connection.cut();
    }

    fn error(&self, _: &Connection, fault: Fault) -> LinkError {
        let address = self.address.clone();
        match fault {
            Fault::Unresponsive => LinkError::Slow { address, within: self.limits.proof },
            Fault::Ended | Fault::Unfit => LinkError::Closed { address },
        }
    }
}

impl ServerConnector {
    async fn open(&self) -> std::io::Result<Box<dyn Stream>> {
        #[cfg(feature = "simulation")]
        if let (Address::Tcp { host, port }, Some(network)) = (&self.address, &self.network.0) {
            return Ok(Box::new(network.connect(host, *port).await?));
        }
        open(&self.address).await
    }

    /// Checks that the server supports memcached's protocol and answers in time.
    async fn prove(&self, connection: &Connection) -> Result<(), LinkError> {
        self.beat(connection, self.limits.proof).await?;
        let deadline = Instant::now() + self.limits.proof;
        match connection.call(&Command::Get { key: NOTHING }, deadline).await {
            Ok(Reply::Missing | Reply::Value(_)) => Ok(()),
            Ok(_) => Err(LinkError::Foreign { address: self.address.clone() }),
            Err(reason) => Err(self.call_error(reason, self.limits.proof)),
        }
    }

    /// Requests the server's statistics, waits for them for at most `within`, and passes them to
    /// the loss detector.
    async fn beat(&self, connection: &Connection, within: Duration) -> Result<(), LinkError> {
        let address = || self.address.clone();
        match connection.call(&Command::Stats, Instant::now() + within).await {
            // Every memcached server reports its process id and its time.
            Ok(Reply::Stats(stats)) if stats.pid != 0 && stats.time != 0 => {
                self.observed.observe(stats, Instant::now());
                Ok(())
            }
            Ok(_) => Err(LinkError::Foreign { address: address() }),
            Err(reason) => Err(self.call_error(reason, within)),
        }
    }

    fn call_error(&self, reason: CallError, within: Duration) -> LinkError {
        let address = self.address.clone();
        match reason {
            CallError::TimedOut | CallError::Overloaded => LinkError::Slow { address, within },
            CallError::Closed | CallError::Lost => LinkError::Closed { address },
        }
    }

    async fn beats(&self, connection: &Connection) -> LinkError {
        let period = self.limits.heartbeat;
        let mut beats = interval_at(Instant::now() + period, period);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            if let Err(error) = self.beat(connection, self.limits.heartbeat_answer).await {
                return error;
            }
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn open(address: &Address) -> std::io::Result<Box<dyn Stream>> {
    match address {
        Address::Tcp { host, port } => {
            let addresses: Vec<_> = lookup_host((host.as_str(), *port)).await?.collect();
            let stream = connect_any(&addresses).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
    }
}
