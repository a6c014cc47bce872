//! Collects information about a server, for checks of a deployment.

mod excess_permissions;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};
use tokio::time::{Instant, timeout};

use crate::connection::{Endpoint, LinkError, Pushes, micros, open};
use crate::info::Info;
use crate::script;

pub use excess_permissions::{ExcessPermissions, PermissionCheck};

/// The commands that query the server, as error messages name them.
const QUESTIONS: &str = "INFO, TIME, ACL WHOAMI and CONFIG GET";
/// The number of round trips that are measured.
const ROUND_TRIPS: usize = 5;

const PERMISSION_QUERY: &str = "questions for the user's rights";

/// Information about a server. A value that the user may not read is `None`.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// The whole reply to `INFO`.
    pub info: Option<Info>,
    /// The shortest of a few round trips over the open connection.
    pub round_trip: Option<Duration>,
    /// The server's clock during the query, in microseconds since the Unix epoch.
    pub micros: Option<u64>,
    /// The user that sent the query, as the server reports it. If the server does not report the
    /// user, the user in the endpoint's settings.
    pub user: Option<Box<str>>,
    /// The snapshot schedule, as `CONFIG GET save` reports it.
    pub save: Option<Box<str>>,
    /// The permissions of `user` that Tollgate does not need. `None` for sentinels, which are not
    /// checked.
    pub excess: Option<ExcessPermissions>,
    /// Whether `user` may load functions or scripts. `None` for sentinels, which are not checked.
    pub loads_code: Option<bool>,
}

/// Queries the server at `endpoint` on a separate connection. The queries write no key. On a server
/// of Redis 7.0 or later, the queries leave one short script in the script cache.
///
/// # Errors
/// [`LinkError`] if the server did not answer within `within`, or if the answer is not that of a
/// Redis server.
pub async fn inspect(endpoint: &Endpoint, within: Duration) -> Result<Inspection, LinkError> {
    let address = endpoint.to_string();
    let slow = |_| LinkError::Slow { address: address.clone(), within };
    timeout(within, query(endpoint)).await.map_err(slow)?
}

async fn query(endpoint: &Endpoint) -> Result<Inspection, LinkError> {
    let connection = open(endpoint, 0, Pushes::Ignored).await?;
    let round_trip = round_trip(&connection.handle()).await;
    let mut questions = redis::pipe();
    questions.cmd("INFO").cmd("TIME").cmd("ACL").arg("WHOAMI");
    questions.cmd("CONFIG").arg("GET").arg("save");
    let replies = connection
        .handle()
        .send_packed_commands(&questions, 0, 4)
        .await
        .map_err(|error| LinkError::answered(connection.address(), QUESTIONS, &error))?;
    let [info, time, user, save] = replies.as_slice() else { return Ok(Inspection::default()) };
    let (info, micros) = (Info::from_reply(info), micros(time));
    let is_sentinel =
        info.as_ref().is_some_and(|info| info.field("redis_mode") == Some("sentinel"));
    let excess = if is_sentinel {
        None
    } else {
        let result = ExcessPermissions::query(&mut connection.handle()).await;
        let lost = |error| LinkError::answered(connection.address(), PERMISSION_QUERY, &error);
        Some(result.map_err(lost)?)
    };
    let loads_code = match is_sentinel {
        true => None,
        false => {
            let result = may_load_code(&mut connection.handle()).await;
            let lost = |error| LinkError::answered(connection.address(), PERMISSION_QUERY, &error);
            Some(result.map_err(lost)?)
        }
    };
    let user = redis::from_redis_value_ref::<String>(user).ok();
    Ok(Inspection {
        info,
        round_trip,
        micros,
        user: user.or_else(|| endpoint.credentials.user.clone()).map(Into::into),
        save: setting(save),
        excess,
        loads_code,
    })
}

/// Returns whether the user may load functions or scripts. To check that, sends a text that is
/// neither a function nor a script. The server rejects either the user or the text.
async fn may_load_code(connection: &mut MultiplexedConnection) -> RedisResult<bool> {
    for kind in ["FUNCTION", "SCRIPT"] {
        match script::query(connection, redis::cmd(kind).arg("LOAD").arg("no code")).await {
            Err(error) if error.code() == Some("NOPERM") => {}
            Err(error) if error.code().is_none() => return Err(error),
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// Returns the shortest of [`ROUND_TRIPS`] round trips, or `None` if the connection fails. The
/// queries after this function return the error of the connection.
async fn round_trip(connection: &MultiplexedConnection) -> Option<Duration> {
    let (mut connection, mut shortest) = (connection.clone(), None);
    for _ in 0..ROUND_TRIPS {
        let sent = Instant::now();
        connection.send_packed_command(&redis::cmd("PING")).await.ok()?;
        let taken = sent.elapsed();
        shortest = Some(shortest.map_or(taken, |known: Duration| known.min(taken)));
    }
    shortest
}

/// Returns the value of the only setting in a reply to `CONFIG GET`, or `None` if the reply
/// contains no setting.
fn setting(reply: &Value) -> Option<Box<str>> {
    let pairs: Vec<(String, String)> = redis::from_redis_value_ref(reply).ok()?;
    pairs.into_iter().next().map(|(_, value)| value.into())
}
