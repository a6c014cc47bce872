//! redis-cell, a server module with one command for a token bucket. redis-cell needs a server of
//! its own, because Tollgate's server module registers the same command.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisResult};

use super::contender::{Contender, ContenderError, LIMITS};
use super::server::Server;
use crate::contender::subject_name;

/// redis-cell as a contender. For each limit of a decision, it sends one `CL.THROTTLE`. All
/// commands use one multiplexed connection.
#[derive(Debug)]
pub struct Cell {
    /// The server that has loaded redis-cell.
    pub server: Server,
    connection: MultiplexedConnection,
    quota: u64,
}

impl Cell {
    /// Connects to `server`. Every limit has `quota` units.
    ///
    /// # Errors
    /// The error of the connection.
    pub async fn connect(server: Server, quota: u64) -> RedisResult<Self> {
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let client = Client::open(server.url())?;
        let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        Ok(Self { server, connection, quota })
    }
}

/// Returns the command that charges one unit of the token bucket `key`. In the bucket, `quota`
/// tokens arrive in `seconds`.
#[must_use]
pub fn throttle(key: &str, quota: u64, seconds: u64) -> Cmd {
    let mut command = redis::cmd("CL.THROTTLE");
    command.arg(key).arg(quota - 1).arg(quota).arg(seconds).arg(1);
    command
}

impl Contender for Cell {
    fn name(&self) -> &'static str {
        "redis-cell"
    }

    async fn decide(&self, subject: u32, limits: usize) -> Result<bool, ContenderError> {
        let name = subject_name(subject);
        let mut commands = Pipeline::new();
        for (limit, hours) in &LIMITS[..limits] {
            commands.add_command(throttle(&format!("{limit}:{name}"), self.quota, hours * 3_600));
        }
        let mut connection = self.connection.clone();
        let answers: Vec<[i64; 5]> =
            commands.query_async(&mut connection).await.map_err(ContenderError::Redis)?;
        Ok(answers.iter().all(|[is_limited, ..]| *is_limited == 0))
    }

    fn calls(&self) -> Option<u64> {
        None
    }
}
