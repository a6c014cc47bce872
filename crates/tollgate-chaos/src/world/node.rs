//! A node in the scenario `changing-world`. At a restart, a new process with the node's policy file
//! replaces the old process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tokio::sync::watch;

use super::client::NodeClient;
use super::serving::Serving;
use crate::error::ChaosError;
use crate::wait::until;

/// A node with a policy file that can be replaced. The node can be restarted with another file.
///
/// At a restart, the new process is ready before callers are directed to it. The old process ends
/// after that. Every caller reaches a running process, as behind a load balancer.
#[derive(Debug)]
pub(crate) struct WorldNode {
    client: NodeClient,
    /// The binary to start.
    program: PathBuf,
    room: PathBuf,
    serving: watch::Sender<Arc<Serving>>,
    /// The number of started processes.
    started: AtomicU64,
    /// The number of windows that the earlier processes of this node, which have ended, had
    /// transferred from the old store.
    rolled_out: AtomicU64,
}

impl WorldNode {
    /// Starts a node with the policy `text` in its own directory `room`.
    pub(super) async fn start(
        client: NodeClient,
        program: PathBuf,
        room: PathBuf,
        text: &str,
    ) -> Result<Self, ChaosError> {
        let first = open(&client, &program, &room, text, 0).await?;
        let serving = watch::Sender::new(Arc::new(first));
        Ok(Self {
            client,
            program,
            room,
            serving,
            started: AtomicU64::new(1),
            rolled_out: AtomicU64::new(0),
        })
    }

    /// Returns the process that serves callers now. A caller keeps the reference until the caller
    /// has received its answer.
    pub(super) fn serving(&self) -> Arc<Serving> {
        Arc::clone(&self.serving.borrow())
    }

    /// Replaces the node's policy file by `text`, starts a new process with this file, directs
    /// callers to the new process, and ends the old process.
    pub(crate) async fn restart(&self, text: &str) -> Result<(), ChaosError> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let opened = open(&self.client, &self.program, &self.room, text, number).await?;
        let before = self.serving.send_replace(Arc::new(opened));
        // After this wait, all calls to the old process are answered, so the old process transfers
        // no further windows.
        until("that nobody asks the process before", async || Ok(Arc::strong_count(&before) == 1))
            .await?;
        self.rolled_out
            .fetch_add(transferred(&before.status().await?["counts"]), Ordering::Relaxed);
        before.end().await
    }

    /// Replaces the policy file of the node by `text` and makes the process reload the file.
    pub(crate) async fn reload(&self, text: &str) -> Result<(), ChaosError> {
        write(&policy_file(&self.room), text)?;
        self.serving().reload().await
    }

    /// Returns the percentage of the subjects for which the new store decides, or `None` if the
    /// node's policy has no rollout.
    pub(crate) async fn percent(&self) -> Result<Option<u64>, ChaosError> {
        Ok(self.serving().status().await?["counts"]["percent"].as_u64())
    }

    /// Returns the number of windows that moved from the old store to the shards.
    pub(crate) async fn rolled_out(&self) -> Result<u64, ChaosError> {
        let now = transferred(&self.serving().status().await?["counts"]);
        Ok(self.rolled_out.load(Ordering::Relaxed) + now)
    }

    /// Returns the number of windows that moved between shards.
    pub(crate) async fn transferred(&self) -> Result<u64, ChaosError> {
        Ok(transferred(&self.moving().await?))
    }

    /// Returns whether the shards that own the subjects in the new shard map make the decisions.
    pub(crate) async fn leads(&self) -> Result<bool, ChaosError> {
        let phase = self.moving().await?["phase"].clone();
        Ok(phase.is_string() && phase != "dual_write")
    }

    /// Returns the address of the primary of the shard `name`, if the primary answers.
    pub(crate) async fn primary(&self, name: &str) -> Result<Option<String>, ChaosError> {
        let status = self.serving().status().await?;
        let mut shards = status["shards"].as_array().into_iter().flatten();
        let shard = shards.find(|shard| shard["name"] == name);
        Ok(shard.and_then(|shard| shard["primary"].as_str()).map(str::to_owned))
    }

    /// Returns whether every shard has a primary that answers, and all memcached connections are
    /// open.
    pub(crate) async fn is_served(&self) -> Result<bool, ChaosError> {
        let status = self.serving().status().await?;
        let all = |name: &str| status[name].as_array().cloned().unwrap_or_default();
        let (shards, servers) = (all("shards"), all("servers"));
        let connected = |server: &Value| server["connected"] == server["connections"];
        let is_complete =
            !shards.is_empty() && shards.iter().all(|shard| shard["primary"].is_string());
        Ok(is_complete && servers.iter().all(connected))
    }

    /// Returns the status of the rebalance, or null if there is none.
    async fn moving(&self) -> Result<Value, ChaosError> {
        Ok(self.serving().status().await?["counts"]["to"]["map"]["rebalance"].clone())
    }
}

async fn open(
    client: &NodeClient,
    program: &Path,
    room: &Path,
    text: &str,
    number: u64,
) -> Result<Serving, ChaosError> {
    let file = policy_file(room);
    write(&file, text)?;
    Serving::start(client.clone(), program, &file, room.join(format!("{number}.log"))).await
}

fn policy_file(room: &Path) -> PathBuf {
    room.join("policy.yaml")
}

/// Writes a new file and renames it into place, so a reader never sees an incomplete file.
fn write(file: &Path, text: &str) -> Result<(), ChaosError> {
    let beside = file.with_extension("new");
    fs::write(&beside, text)
        .and_then(|()| fs::rename(&beside, file))
        .map_err(|error| ChaosError::File(file.to_owned(), error))
}

fn transferred(status: &Value) -> u64 {
    status["transferred"].as_u64().unwrap_or_default()
}
