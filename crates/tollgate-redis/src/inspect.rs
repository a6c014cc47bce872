//! What a server tells of itself to whoever checks a deployment.

use std::time::Duration;

use redis::Value;
use tokio::time::timeout;

use crate::info::Info;
use crate::link::{Endpoint, LinkError, Pushes, micros, open};

/// What the questions are called in errors.
const QUESTIONS: &str = "INFO, TIME, ACL WHOAMI and CONFIG GET";

/// What a server tells of itself. What the user's permissions hide is `None`.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// All that `INFO` tells.
    pub info: Option<Info>,
    /// The clock, in microseconds since the epoch, at some moment while it was asked.
    pub micros: Option<u64>,
    /// As whom the questions were asked.
    pub user: Option<Box<str>>,
    /// When snapshots are taken, as `CONFIG GET save` tells it. Who sees it may administer.
    pub save: Option<Box<str>>,
}

/// Asks the server at `endpoint` about itself, over a connection of its own, and changes nothing.
///
/// # Errors
/// [`LinkError`] if it did not answer `within` that time, or not as such a server does.
pub async fn inspect(endpoint: &Endpoint, within: Duration) -> Result<Inspection, LinkError> {
    let address = endpoint.to_string();
    let slow = |_| LinkError::Slow { address: address.clone(), within };
    timeout(within, ask(endpoint)).await.map_err(slow)?
}

async fn ask(endpoint: &Endpoint) -> Result<Inspection, LinkError> {
    let connection = open(endpoint, 0, Pushes::Unheard).await?;
    let mut questions = redis::pipe();
    questions.cmd("INFO").cmd("TIME").cmd("ACL").arg("WHOAMI");
    questions.cmd("CONFIG").arg("GET").arg("save");
    let replies = connection
        .handle()
        .send_packed_commands(&questions, 0, 4)
        .await
        .map_err(|error| LinkError::answered(connection.address(), QUESTIONS, &error))?;
    let [info, time, user, save] = replies.as_slice() else { return Ok(Inspection::default()) };
    Ok(Inspection {
        info: Info::from_reply(info),
        micros: micros(time),
        user: redis::from_redis_value_ref::<String>(user).ok().map(Into::into),
        save: setting(save),
    })
}

/// The value of the one pair that `CONFIG GET` answers.
fn setting(reply: &Value) -> Option<Box<str>> {
    let pairs: Vec<(String, String)> = redis::from_redis_value_ref(reply).ok()?;
    pairs.into_iter().next().map(|(_, value)| value.into())
}
