//! From an endpoint to a connection that has proven itself.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ProtocolVersion, RedisConnectionInfo, RedisResult, Value};
use tokio::sync::watch;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::endpoint::{Address, Endpoint, Protocol};
use super::error::LinkError;
use super::progress::{Lag, Progress, Replication};
use super::role::Role;
use super::stream;
use crate::codec::Codec;
use crate::offset::Reading;

/// Calls that the connection holds before they are written. A lane has one under way at a time.
const WRITE_QUEUE: usize = 16;

/// What a connection is proven by, as errors name it.
const PROOF: &str = "ROLE, TIME, PING and INFO";

/// What a server must be to be of use.
#[derive(Clone, Debug)]
pub(crate) enum Duty {
    /// Take writes.
    Primary,
    /// Take writes, and tell how far it has written, for those who read from its replicas.
    Followed(Arc<Progress>),
    /// Answer reads, from state that is current but for the delay of replication.
    Replica(Arc<Progress>),
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

impl Duty {
    fn accepts(&self, role: Role) -> bool {
        match self {
            // A server whose access rules hide its role shows it by refusing writes.
            Self::Primary | Self::Followed(_) => matches!(role, Role::Primary | Role::Unknown),
            // One that was promoted is the shard's primary itself, or is found out by its progress.
            Self::Replica(_) => matches!(role, Role::Primary | Role::Following | Role::Unknown),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Primary | Self::Followed(_) => "a primary",
            Self::Replica(_) => "a replica in step with its primary",
        }
    }

    /// Hears what the server says of its replication, if it is asked.
    fn hear(&self, told: Option<&Value>, at: Instant) -> Result<(), Lag> {
        let told = told.and_then(Replication::from_reply);
        match (self, told) {
            (Self::Primary, _) | (Self::Followed(_), None) => Ok(()),
            (Self::Followed(progress), Some(told)) => {
                progress.observe(&told, at);
                Ok(())
            }
            (Self::Replica(progress), Some(told)) => progress.check(&told, at),
            (Self::Replica(_), None) => Err(Lag::Untold),
        }
    }
}

/// Connects to `endpoint`, has the server prove itself, and makes it ready for `codec`. Returns
/// what the server told of its clock, too.
pub(crate) async fn connect<C: Codec>(
    endpoint: &Endpoint,
    duty: &Duty,
    codec: &C,
    limits: ConnectLimits,
    generation: u64,
) -> Result<(Connection, Option<Reading>), LinkError> {
    let address = endpoint.to_string();
    let prepare = async {
        let mut connection = open(endpoint, address.clone(), generation).await?;
        // Asked before anything is loaded: a server of the wrong role is left as it is.
        let clock = connection.prove(duty, limits.proof).await?;
        codec
            .load(&mut connection.redis)
            .await
            .map_err(|error| LinkError::answered(&address, "the loading of the step", &error))?;
        Ok((connection, clock))
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

    /// Asks for role, time and a sign of life: one round trip, which has to end `within` a time, by
    /// a server that does what `duty` says. `PING` is refused by a server that loads its data or
    /// has lost its primary, the other two are not. Returns what it tells of its clock.
    pub(crate) async fn prove(
        &self,
        duty: &Duty,
        within: Duration,
    ) -> Result<Option<Reading>, LinkError> {
        let mut questions = redis::pipe();
        questions.cmd("ROLE").cmd("TIME").cmd("PING");
        let count = if matches!(duty, Duty::Primary) {
            3
        } else {
            questions.cmd("INFO").arg("replication");
            4
        };
        let sent = Instant::now();
        let mut handle = self.handle();
        let replies = timeout(within, handle.send_packed_commands(&questions, 0, count))
            .await
            .map_err(|_| LinkError::Slow { address: self.address.clone(), within })?
            .map_err(|error| LinkError::answered(&self.address, PROOF, &error))?;
        let received = Instant::now();
        let [role, time, sign, rest @ ..] = replies.as_slice() else {
            return Err(self.refused("an unknown number of replies"));
        };
        for reply in [role, sign] {
            if let Value::ServerError(error) = reply
                && error.code() != "NOPERM"
            {
                return Err(self.refused(error.code()));
            }
        }
        let role = Role::from_reply(role);
        if !duty.accepts(role) {
            return Err(LinkError::Role {
                address: self.address.clone(),
                found: role.name(),
                wanted: duty.name(),
            });
        }
        duty.hear(rest.first(), received)
            .map_err(|lag| LinkError::Lags { address: self.address.clone(), lag })?;
        Ok(micros(time).map(|micros| Reading::of_micros(sent, received, micros)))
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
        LinkError::Refused { address: self.address.clone(), asked: PROOF, code: code.to_owned() }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn open(
    endpoint: &Endpoint,
    address: String,
    generation: u64,
) -> Result<Connection, LinkError> {
    let (identity, tls) = prepare(endpoint).await?;
    let stream = stream::open(&endpoint.address, tls.as_ref())
        .await
        .map_err(|error| LinkError::open(&address, &error))?;
    // Every wait has the lane's deadline or the link's limits around it.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WRITE_QUEUE);
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
fn micros(reply: &Value) -> Option<u64> {
    let (secs, micros): (u64, u64) = redis::from_redis_value_ref(reply).ok()?;
    secs.checked_mul(1_000_000)?.checked_add(micros)
}
