//! The two-key script, with the layout that GitHub published in 2021: a key for the count, and a
//! second key for the expiry of the count.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, InfoDict, RedisResult, Script, ScriptInvocation};
use tollgate::{Clock, SystemClock};

use super::contender::{Contender, ContenderError, LIMITS};
use crate::contender::subject_name;

/// The source of the script. Each limit has two keys: its count, and the expiry of the count. The
/// arguments are the units, the time in seconds, and, for each limit, the end of a window that
/// opens now. The script returns the count and the expiry of each limit.
pub const SCRIPT: &str = r"
local units, now = ARGV[1], tonumber(ARGV[2])
local status = {}
for limit = 1, #KEYS / 2 do
  local count, expiry = KEYS[2 * limit - 1], KEYS[2 * limit]
  local expires_at = tonumber(redis.call('GET', expiry))
  if not expires_at or expires_at <= now then
    expires_at = tonumber(ARGV[2 + limit])
    redis.call('SET', count, 0, 'EXAT', expires_at + 1)
    redis.call('SET', expiry, expires_at, 'EXAT', expires_at + 1)
  end
  status[2 * limit - 1] = redis.call('INCRBY', count, units)
  status[2 * limit] = expires_at
end
return status
";

/// The two-key script as a contender. It sends one `EVALSHA` for each decision over one multiplexed
/// connection, as a typical service does.
#[derive(Debug)]
pub struct TwoKeys {
    connection: MultiplexedConnection,
    script: Script,
    quota: u64,
}

impl TwoKeys {
    /// Connects to the server at `url` and loads the script. Every limit has `quota` units.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn connect(url: &str, quota: u64) -> RedisResult<Self> {
        // The connection has no response timeout, like the connections of Tollgate's store.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let client = Client::open(url)?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let script = Script::new(SCRIPT);
        script.prepare_invoke().load_async(&mut connection).await?;
        Ok(Self { connection, script, quota })
    }

    /// Returns the version of the server.
    ///
    /// # Errors
    /// The error of the connection.
    pub async fn server_version(&self) -> RedisResult<String> {
        let mut connection = self.connection.clone();
        let info: InfoDict = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
        Ok(info.get("redis_version").unwrap_or_else(|| "of an unknown version".into()))
    }

    fn invocation(&self, subject: u32, limits: usize) -> ScriptInvocation<'_> {
        let name = subject_name(subject);
        let now = SystemClock.now().as_millis() / 1_000;
        let mut invocation = self.script.prepare_invoke();
        invocation.arg(1).arg(now);
        for (limit, hours) in &LIMITS[..limits] {
            invocation.key(format!("rl:{limit}:{name}:count"));
            invocation.key(format!("rl:{limit}:{name}:expiry"));
            invocation.arg(now + hours * 3_600);
        }
        invocation
    }
}

impl Contender for TwoKeys {
    fn name(&self) -> &'static str {
        "two keys"
    }

    async fn decide(&self, subject: u32, limits: usize) -> Result<bool, ContenderError> {
        let mut connection = self.connection.clone();
        let invocation = self.invocation(subject, limits);
        let status: Vec<u64> =
            invocation.invoke_async(&mut connection).await.map_err(ContenderError::Redis)?;
        Ok(status.iter().step_by(2).all(|count| *count <= self.quota))
    }

    fn calls(&self) -> Option<u64> {
        None
    }
}
