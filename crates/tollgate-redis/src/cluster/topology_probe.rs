//! Queries several nodes for the slot layout.

use std::time::Duration;

use redis::{RedisError, Value};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::ClusterError;
use super::layout::Layout;
use crate::connection::{Address, Endpoint, LinkError, Pushes, open};

/// The time to wait for further answers after the first answer, because another node may have a
/// newer layout.
const GRACE: Duration = Duration::from_millis(20);

/// The command that queries the layout, as error messages name it.
const QUESTION: &str = "CLUSTER SLOTS";

/// The cluster layout that one node reports.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) layout: Layout,
    pub(super) view: ViewRank,
    /// The node's address.
    pub(super) address: String,
}

/// The rank of a node's layout among the layouts that nodes report. A layout with a greater rank is
/// newer or more usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ViewRank {
    /// The newest configuration epoch that the node has received.
    pub(super) epoch: u64,
    /// The cluster state that the node reports.
    pub(super) state: State,
}

/// The cluster state in a node's report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// The node reports that the cluster does not serve requests, or does not report the state of
    /// the cluster.
    #[default]
    Fail,
    /// The node reports that the cluster serves requests.
    Ok,
}

/// Queries the servers at `endpoints` concurrently and returns the answer with the greatest rank.
/// Each query takes at most `within`.
///
/// # Errors
/// If no server answered, the first error.
pub(super) async fn probe(
    endpoints: Vec<Endpoint>,
    within: Duration,
) -> Result<Answer, ClusterError> {
    let mut queries = JoinSet::new();
    for endpoint in endpoints {
        queries.spawn(async move { query(&endpoint, within).await });
    }
    let (mut best, mut first_error) = (None::<Answer>, None);
    let mut until = None;
    loop {
        let next = match until {
            None => queries.join_next().await,
            Some(until) => timeout_at(until, queries.join_next()).await.unwrap_or(None),
        };
        match next {
            Some(Ok(Ok(answer))) => {
                until = until.or_else(|| Some(Instant::now() + GRACE));
                if best.as_ref().is_none_or(|best| best.view < answer.view) {
                    best = Some(answer);
                }
            }
            Some(Ok(Err(error))) => first_error = first_error.or(Some(error)),
            // A task that was cancelled returns no result.
            Some(Err(_)) => {}
            None => break,
        }
    }
    best.ok_or_else(|| first_error.unwrap_or(ClusterError::NoSeeds))
}

async fn query(endpoint: &Endpoint, within: Duration) -> Result<Answer, ClusterError> {
    timeout(within, question(endpoint))
        .await
        .map_err(|_| LinkError::Slow { address: endpoint.to_string(), within })?
}

async fn question(endpoint: &Endpoint) -> Result<Answer, ClusterError> {
    let connection = open(endpoint, 0, Pushes::Ignored).await?;
    let address = endpoint.to_string();
    let mut questions = redis::pipe();
    questions.cmd("CLUSTER").arg("SLOTS").cmd("CLUSTER").arg("INFO");
    let refused = |error: &RedisError| {
        if error.detail().is_some_and(|detail| detail.contains("cluster support disabled")) {
            return ClusterError::Disabled { address: address.clone() };
        }
        LinkError::answered(&address, QUESTION, error).into()
    };
    let replies = connection.handle().send_packed_commands(&questions, 0, 2).await;
    let mut replies = replies.map_err(|error| refused(&error))?.into_iter();
    let slots =
        replies.next().unwrap_or(Value::Nil).extract_error().map_err(|error| refused(&error))?;
    let layout = Layout::read(&slots, host(endpoint))
        .map_err(|problem| ClusterError::Layout { address: address.clone(), problem })?;
    let view = replies.next().map(|info| ViewRank::read(&info)).unwrap_or_default();
    Ok(Answer { layout, view, address })
}

/// Returns the host of the server at `endpoint`. A node that the server reports without a host gets
/// this host.
fn host(endpoint: &Endpoint) -> &str {
    match &endpoint.address {
        Address::Tcp { host, .. } => host,
        Address::Unix(_) => "",
    }
}

impl ViewRank {
    /// Parses the reply to `CLUSTER INFO`. A missing field gets the value with the lowest rank.
    fn read(reply: &Value) -> Self {
        let text = match reply {
            Value::BulkString(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
            Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
            _ => "",
        };
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        Self {
            epoch: field("cluster_current_epoch")
                .and_then(|epoch| epoch.parse().ok())
                .unwrap_or_default(),
            state: if field("cluster_state") == Some("ok") { State::Ok } else { State::Fail },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_heard_of_more_knows_better() {
        let view = |text: &str| ViewRank::read(&Value::BulkString(text.as_bytes().into()));
        let known = view("cluster_enabled:1\r\ncluster_state:ok\r\ncluster_current_epoch:7\r\n");
        assert_eq!(known, ViewRank { epoch: 7, state: State::Ok });
        assert!(known < view("cluster_state:fail\r\ncluster_current_epoch:8\r\n"));
        assert!(known > view("cluster_state:fail\r\ncluster_current_epoch:7\r\n"));
        for nonsense in ["", "cluster_current_epoch:x\r\ncluster_state:?", "\0"] {
            assert_eq!(view(nonsense), ViewRank::default(), "{nonsense:?}");
        }
        assert_eq!(ViewRank::read(&Value::Nil), ViewRank::default());
    }
}
