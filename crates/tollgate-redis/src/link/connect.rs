//! From an endpoint to a connection that has proven itself.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ProtocolVersion, RedisConnectionInfo, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::endpoint::{Address, Endpoint, Protocol};
use super::error::LinkError;
use super::replication::Replication;
use super::replication_progress::{Lag, ReplicationProgress};
use super::role::Role;
use super::stream;
use crate::codec::Codec;
use crate::offset::Reading;
use crate::topology::Members;

/// Calls that the connection holds before they are written. A batcher has one under way at a time.
const WRITE_QUEUE: usize = 16;

/// What a connection is proven by, as errors name it.
const PROBE: &str = "ROLE, TIME, PING and INFO";

/// What a server must be to be of use.
#[derive(Clone, Debug)]
pub(crate) enum RequiredRole {
    /// Take writes.
    Primary,
    /// Take writes, and tell how far it has written, for those who read from its replicas.
    ReportingPrimary(Arc<ReplicationProgress>),
    /// Answer reads, from state that is current but for the delay of replication.
    Replica(Arc<ReplicationProgress>),
}

/// What a server tells of itself when it is asked.
#[derive(Clone, Debug)]
pub(crate) struct ServerReport {
    /// Its role.
    pub(crate) role: Role,
    /// Its clock, if it may be asked for it.
    pub(crate) clock: Option<Reading>,
    /// Its place in replication, if it may be asked for it.
    pub(crate) replication: Option<Replication>,
    /// When it had told.
    pub(crate) at: Instant,
}

/// How long opening a connection may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectLimits {
    /// From the first packet to a server made ready.
    pub connect: Duration,
    /// The round trip of the question that proves the connection.
    pub proof: Duration,
}

/// A connection that has proven itself, and the task that moves its bytes, which ends with it.
#[derive(Debug)]
pub(crate) struct Connection {
    redis: MultiplexedConnection,
    /// Which of this process's connections over a link it is.
    pub generation: u64,
    /// True once the server or the network has ended it.
    ended: watch::Receiver<bool>,
    address: String,
    driver: AbortHandle,
}

impl RequiredRole {
    fn accepts(&self, role: Role) -> bool {
        match self {
            // A server whose access rules hide its role shows it by refusing writes.
            Self::Primary | Self::ReportingPrimary(_) => {
                matches!(role, Role::Primary | Role::Unknown)
            }
            // One that was promoted is the shard's primary itself, or is found out by its progress.
            Self::Replica(_) => matches!(role, Role::Primary | Role::Replica | Role::Unknown),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Primary | Self::ReportingPrimary(_) => "a primary",
            Self::Replica(_) => "a replica in step with its primary",
        }
    }

    /// Hears what the server at `address` says of its replication.
    fn read_replication(
        &self,
        address: &str,
        server_report: &ServerReport,
        members: &Members,
    ) -> Result<(), LinkError> {
        match (self, &server_report.replication) {
            (Self::Primary, _) | (Self::ReportingPrimary(_), None) => {}
            (Self::ReportingPrimary(progress), Some(replication)) => {
                progress.observe(replication, server_report.at);
            }
            (Self::Replica(progress), Some(replication)) => {
                return progress
                    .check(replication, server_report.at)
                    .map_err(|lag| LinkError::Lags { address: address.to_owned(), lag });
            }
            (Self::Replica(_), None) => {
                let (address, lag) = (address.to_owned(), Lag::Unreported);
                return Err(LinkError::Lags { address, lag });
            }
        }
        members.record_report(
            address,
            server_report.role,
            server_report.replication.as_ref(),
            server_report.at,
        )
    }

    /// Whether a server that does it is charged.
    pub(crate) fn charges(&self) -> bool {
        !matches!(self, Self::Replica(_))
    }
}

/// Connects to `endpoint`, has the server prove itself to be of use and to be charged by what
/// `members` knows, and makes it ready for `codec`. Returns what the server told of itself, too.
pub(crate) async fn connect<C: Codec>(
    endpoint: &Endpoint,
    required_role: &RequiredRole,
    members: &Members,
    codec: &C,
    limits: ConnectLimits,
    generation: u64,
) -> Result<(Connection, ServerReport), LinkError> {
    let address = endpoint.to_string();
    let prepare = async {
        let mut connection = open(endpoint, generation, Pushes::Ignored).await?;
        // Asked before anything is loaded: a server of the wrong role is left as it is.
        let server_report = connection.probe(required_role, members, limits.proof).await?;
        codec
            .load(&mut connection.redis)
            .await
            .map_err(|error| LinkError::answered(&address, "the loading of the step", &error))?;
        Ok((connection, server_report))
    };
    let slow = |_| LinkError::Slow { address: address.clone(), within: limits.connect };
    timeout(limits.connect, prepare).await.map_err(slow)?
}

impl Connection {
    /// Sends `command` and waits, without a limit of its own, for the reply.
    pub(crate) async fn call(&self, command: &Cmd) -> RedisResult<Value> {
        // A clone is a handle to the same connection, and sending needs one of its own.
        self.redis.clone().send_packed_command(command).await?.extract_error()
    }

    /// A handle for what has to talk to the server beside the calls.
    pub(crate) fn handle(&self) -> MultiplexedConnection {
        self.redis.clone()
    }

    /// Asks the server about itself, as [`Self::ask`] does, and whether it does what `required_role` says and
    /// may be charged for it by what `members` knows.
    pub(crate) async fn probe(
        &self,
        required_role: &RequiredRole,
        members: &Members,
        within: Duration,
    ) -> Result<ServerReport, LinkError> {
        let server_report = self.ask(within).await?;
        if !required_role.accepts(server_report.role) {
            if required_role.charges() {
                // That it is none is news to those who take it for the primary.
                let _ = members.record_report(
                    &self.address,
                    server_report.role,
                    server_report.replication.as_ref(),
                    server_report.at,
                );
            }
            return Err(LinkError::Role {
                address: self.address.clone(),
                found: server_report.role.name(),
                wanted: required_role.name(),
            });
        }
        required_role.read_replication(&self.address, &server_report, members)?;
        Ok(server_report)
    }

    /// Asks for role, time, a sign of life and the place in replication: one round trip, which has
    /// to end `within` a time. `PING` is refused by a server that loads its data or has lost its
    /// primary, the others are not.
    pub(crate) async fn ask(&self, within: Duration) -> Result<ServerReport, LinkError> {
        let mut questions = redis::pipe();
        questions.cmd("ROLE").cmd("TIME").cmd("PING").cmd("INFO").arg("replication");
        let sent = Instant::now();
        let mut handle = self.handle();
        let replies = timeout(within, handle.send_packed_commands(&questions, 0, 4))
            .await
            .map_err(|_| LinkError::Slow { address: self.address.clone(), within })?
            .map_err(|error| LinkError::answered(&self.address, PROBE, &error))?;
        let received = Instant::now();
        let [role, time, sign, replication] = replies.as_slice() else {
            return Err(self.refused("an unknown number of replies"));
        };
        for reply in [role, sign] {
            if let Value::ServerError(error) = reply
                && error.code() != "NOPERM"
            {
                return Err(self.refused(error.code()));
            }
        }
        let replication = Replication::from_reply(replication);
        let role = match (Role::from_reply(role), &replication) {
            (Role::Unknown, Some(replication)) => replication.role,
            (role, _) => role,
        };
        let clock = micros(time).map(|micros| Reading::of_micros(sent, received, micros));
        Ok(ServerReport { role, clock, replication, at: received })
    }

    /// Waits until the server or the network has ended the connection.
    pub(crate) async fn ended(&self) {
        // An error means that the task is gone, and the connection with it.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Whether the server or the network has ended the connection.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    fn refused(&self, code: &str) -> LinkError {
        LinkError::Refused { address: self.address.clone(), asked: PROBE, code: code.to_owned() }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// What becomes of messages that the server sends of its own accord.
#[derive(Debug)]
pub(crate) enum Pushes {
    /// There are none.
    Ignored,
    /// Each of them wakes whoever waits.
    Wake(Arc<Notify>),
}

/// Opens a connection to `endpoint`, without a limit of its own for the time.
pub(crate) async fn open(
    endpoint: &Endpoint,
    generation: u64,
    pushes: Pushes,
) -> Result<Connection, LinkError> {
    let address = endpoint.to_string();
    let (identity, tls) = prepare(endpoint).await?;
    let stream = stream::open(&endpoint.address, &endpoint.names, tls.as_ref())
        .await
        .map_err(|error| LinkError::open(&address, &error))?;
    // Every wait has the lane's deadline or the link's limits around it.
    let mut config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WRITE_QUEUE);
    if let Pushes::Wake(waiting) = pushes {
        config = config.set_push_sender(move |_| {
            waiting.notify_one();
            Ok::<_, std::convert::Infallible>(())
        });
    }
    let (redis, driver) =
        MultiplexedConnection::new_with_config(&identity, stream, config).await.map_err(
            |error| LinkError::answered(&address, "the opening of the connection", &error),
        )?;
    let (end, ended) = watch::channel(false);
    let driver = tokio::spawn(async move {
        driver.await;
        end.send_replace(true);
    });
    Ok(Connection { redis, generation, ended, address, driver: driver.abort_handle() })
}

/// Reads what the connection needs from files and the environment, off the async threads.
async fn prepare(
    endpoint: &Endpoint,
) -> Result<(RedisConnectionInfo, Option<TlsConnector>), LinkError> {
    let tls = match &endpoint.address {
        Address::Tcp { tls: Some(tls), .. } => Some(tls.clone()),
        _ => None,
    };
    let mut identity = RedisConnectionInfo::default()
        .set_db(endpoint.database.into())
        .set_lib_name("tollgate", env!("CARGO_PKG_VERSION"))
        .set_protocol(match endpoint.protocol {
            Protocol::Resp2 => ProtocolVersion::RESP2,
            Protocol::Resp3 => ProtocolVersion::RESP3,
        });
    if let Some(user) = &endpoint.credentials.user {
        identity = identity.set_username(user);
    }
    let source = endpoint.credentials.password.clone();
    if source.is_none() && tls.is_none() {
        return Ok((identity, None));
    }
    let read = move || {
        let password = source.map(|source| source.read()).transpose()?;
        let tls = tls.map(|tls| tls.connector()).transpose()?;
        Ok::<_, LinkError>((password, tls))
    };
    let (password, tls) = spawn_blocking(read)
        .await
        .map_err(|_| LinkError::Closed { address: endpoint.to_string() })??;
    if let Some(password) = password {
        identity = identity.set_password(password.expose());
    }
    Ok((identity, tls))
}

/// The reply to `TIME`, in microseconds since the epoch; nothing if it is not one.
pub(crate) fn micros(reply: &Value) -> Option<u64> {
    let (secs, micros): (u64, u64) = redis::from_redis_value_ref(reply).ok()?;
    secs.checked_mul(1_000_000)?.checked_add(micros)
}
