//! What a server tells of itself to whoever checks a deployment.

mod excess_permissions;

use std::time::Duration;

use redis::Value;
use tokio::time::timeout;

use crate::info::Info;
use crate::link::{Endpoint, LinkError, Pushes, micros, open};

pub use excess_permissions::{ExcessPermissions, PermissionCheck};

/// What the questions are called in errors.
const QUESTIONS: &str = "INFO, TIME, ACL WHOAMI and CONFIG GET";
const RIGHTS: &str = "questions for the user's rights";

/// What a server tells of itself. What the user's permissions hide is `None`.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// All that `INFO` tells.
    pub info: Option<Info>,
    /// The clock, in microseconds since the epoch, at some moment while it was asked.
    pub micros: Option<u64>,
    /// As whom the questions were asked: as the server says, else as the endpoint does.
    pub user: Option<Box<str>>,
    /// When snapshots are taken, as `CONFIG GET save` tells it.
    pub save: Option<Box<str>>,
    /// What that user may do that Tollgate never does. A sentinel is not asked.
    pub excess: Option<ExcessPermissions>,
}

/// Asks the server at `endpoint` about itself, over a connection of its own. It writes no key; a
/// server of Redis 7.0 or later keeps one short script in its cache of scripts.
///
/// # Errors
/// [`LinkError`] if it did not answer `within` that time, or not as such a server does.
pub async fn inspect(endpoint: &Endpoint, within: Duration) -> Result<Inspection, LinkError> {
    let address = endpoint.to_string();
    let slow = |_| LinkError::Slow { address: address.clone(), within };
    timeout(within, ask(endpoint)).await.map_err(slow)?
}

async fn ask(endpoint: &Endpoint) -> Result<Inspection, LinkError> {
    let connection = open(endpoint, 0, Pushes::Ignored).await?;
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
        let asked = ExcessPermissions::ask(&mut connection.handle()).await;
        let lost = |error| LinkError::answered(connection.address(), RIGHTS, &error);
        Some(asked.map_err(lost)?)
    };
    let user = redis::from_redis_value_ref::<String>(user).ok();
    Ok(Inspection {
        info,
        micros,
        user: user.or_else(|| endpoint.credentials.user.clone()).map(Into::into),
        save: setting(save),
        excess,
    })
}

/// The value of the one pair that `CONFIG GET` answers.
fn setting(reply: &Value) -> Option<Box<str>> {
    let pairs: Vec<(String, String)> = redis::from_redis_value_ref(reply).ok()?;
    pairs.into_iter().next().map(|(_, value)| value.into())
}
