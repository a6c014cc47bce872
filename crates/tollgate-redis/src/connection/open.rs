//! Opens connections to endpoints and queries the reports of their servers.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ProtocolVersion, RedisConnectionInfo, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::endpoint::{Address, Endpoint, Protocol};
use super::epoch_mark::EpochMark;
use super::error::LinkError;
use super::load::Load;
use super::replication::Replication;
use super::role::Role;
use super::stream;
use crate::offset::Reading;

/// The most calls in flight to one server. The write queue of a connection has the same capacity.
pub(crate) const CALLS_IN_FLIGHT: usize = 16;

/// The commands that verify a connection, as error messages name them.
const PROBE: &str = "ROLE, TIME, PING, INFO and MGET";

/// The report of a server about itself.
#[derive(Clone, Debug)]
pub(crate) struct ServerReport {
    /// The role of the server.
    pub(crate) role: Role,
    /// The reading of the server's clock. `None` if the access rules do not permit the user to read
    /// it.
    pub(crate) clock: Option<Reading>,
    /// The replication state of the server. `None` if the access rules do not permit the user to
    /// read it.
    pub(crate) replication: Option<Replication>,
    /// The server's copy of the shard's mark: a key that servers with the shard's counters have and
    /// an empty server lacks.
    pub(crate) mark: EpochMark,
    /// The time at which the report arrived.
    pub(crate) at: Instant,
}

/// A verified connection, and the task that transfers its bytes. Dropping the connection ends the
/// task.
#[derive(Debug)]
pub(crate) struct Connection {
    redis: MultiplexedConnection,
    /// The number of the connection. Each later connection of the same link in this process has a
    /// higher number.
    pub generation: u64,
    /// Whether the server or the network has closed the connection.
    ended: watch::Receiver<bool>,
    address: String,
    driver: AbortHandle,
    endpoint: Endpoint,
    load: Arc<Load>,
}

impl Connection {
    /// Sends `command` and waits, without a time limit, for the reply.
    pub(crate) async fn call(&self, command: &Cmd) -> RedisResult<Value> {
        // A clone is a handle to the same connection. Sending needs exclusive access to a handle.
        self.redis.clone().send_packed_command(command).await?.extract_error()
    }

    /// Returns the counter of the calls in flight on this connection.
    pub(crate) fn load(&self) -> &Arc<Load> {
        &self.load
    }

    /// Returns the endpoint of the server.
    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns a handle for commands that are not sent by a batcher.
    pub(crate) fn handle(&self) -> MultiplexedConnection {
        self.redis.clone()
    }

    /// Queries the server's role, time, mark and replication state in one round trip, which takes
    /// at most `within`. Also queries whether the server serves clients: a server that loads its
    /// data or has lost its primary rejects `PING` but not the other commands.
    pub(crate) async fn query(&self, within: Duration) -> Result<ServerReport, LinkError> {
        let mut questions = redis::pipe();
        questions.cmd("ROLE").cmd("TIME").cmd("PING").cmd("INFO").arg("replication");
        questions.add_command(EpochMark::question());
        let sent = Instant::now();
        let mut handle = self.handle();
        let replies = timeout(within, handle.send_packed_commands(&questions, 0, 5))
            .await
            .map_err(|_| LinkError::Slow { address: self.address.clone(), within })?
            .map_err(|error| LinkError::answered(&self.address, PROBE, &error))?;
        let received = Instant::now();
        let [role, time, sign, replication, mark] = replies.as_slice() else {
            return Err(self.refused(PROBE, "an unknown number of replies"));
        };
        // Access rules can forbid these commands. Some services and configurations disable `ROLE`,
        // which is then an unknown command; `INFO` reports the role too.
        let tolerated: [(_, _, &[_]); 2] =
            [("ROLE", role, &["NOPERM", "ERR"]), ("PING", sign, &["NOPERM"])];
        for (command, reply, tolerated) in tolerated {
            if let Value::ServerError(error) = reply
                && !tolerated.contains(&error.code())
            {
                return Err(self.refused(command, error.code()));
            }
        }
        let replication = Replication::from_reply(replication);
        let role = match (Role::from_reply(role), &replication) {
            (Role::Unknown, Some(replication)) => replication.role,
            (role, _) => role,
        };
        let clock = micros(time).map(|micros| Reading::of_micros(sent, received, micros));
        let mark = EpochMark::from_reply(mark);
        Ok(ServerReport { role, clock, replication, mark, at: received })
    }

    /// Waits until the server or the network has closed the connection.
    pub(crate) async fn ended(&self) {
        // An error of this wait means that the connection's task has ended, together with the
        // connection.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Returns whether the server or the network has closed the connection.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    fn refused(&self, command: &'static str, code: &str) -> LinkError {
        LinkError::Refused { address: self.address.clone(), command, code: code.to_owned() }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// What happens with push messages from the server.
#[derive(Debug)]
pub(crate) enum Pushes {
    /// The server is expected to send no push messages.
    Ignored,
    /// Each push message wakes the task that waits for this notification.
    Wake(Arc<Notify>),
}

/// Opens a connection to `endpoint` without a time limit.
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
    // There is no time limit in this configuration. The batcher's deadlines or the link's limits
    // bound every wait.
    let mut config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(CALLS_IN_FLIGHT);
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
    let (driver, load) = (driver.abort_handle(), Arc::new(Load::new()));
    Ok(Connection { redis, generation, ended, address, driver, endpoint: endpoint.clone(), load })
}

/// Reads the credentials and the certificates of `endpoint` from files and the environment, on a
/// thread that may block. Returns them in the form that a new connection needs. The connector is
/// `None` if the endpoint does not use TLS.
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

/// Parses the reply to `TIME` into microseconds since the Unix epoch. Returns `None` if the reply
/// is invalid.
pub(crate) fn micros(reply: &Value) -> Option<u64> {
    let (secs, micros): (u64, u64) = redis::from_redis_value_ref(reply).ok()?;
    secs.checked_mul(1_000_000)?.checked_add(micros)
}
