//! Servers that replicate each other.

use std::time::Duration;

use redis::aio::MultiplexedConnection;

use super::{PATIENCE, Server};

/// The pause between two checks of replication.
const PAUSE: Duration = Duration::from_millis(5);

/// The argument with which a primary starts a full synchronization at once and does not wait for
/// more replicas.
pub const QUICK: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

impl Server {
    /// Makes the server a replica of `leader` and waits until it is in sync.
    pub async fn follow(&self, leader: &Self) {
        self.begin_to_follow(leader).await;
        let mut connection = self.connect().await;
        let in_step = async {
            loop {
                let role: redis::Value =
                    redis::cmd("ROLE").query_async(&mut connection).await.expect("a role");
                if format!("{role:?}").contains("connected") {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, in_step).await.expect("the replica is in step");
    }

    /// Makes the server a replica of `leader`, without waiting. A replica rejects writes.
    pub async fn begin_to_follow(&self, leader: &Self) {
        self.execute(&["REPLICAOF", "127.0.0.1", &leader.port().to_string()]).await;
    }

    /// Makes the server a primary.
    pub async fn promote(&self) {
        self.execute(&["REPLICAOF", "NO", "ONE"]).await;
    }

    /// Waits until a replica has all writes of this server.
    pub async fn is_followed(&self) {
        wait_for_replica(&mut self.connect().await).await;
    }

    /// Sends a command of an administrator to the server.
    pub async fn execute(&self, words: &[&str]) {
        let mut connection = self.connect().await;
        let result = redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut connection).await;
        result.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
}

/// Waits until a replica has all writes of the connected server.
pub async fn wait_for_replica(connection: &mut MultiplexedConnection) {
    let mut wait = redis::pipe();
    // WAIT covers the writes before this connection's last write. Some servers count every command
    // as a write, others do not.
    wait.cmd("SET").arg("waited").arg("").arg("PX").arg(PATIENCE.as_millis() as u64).ignore();
    wait.cmd("WAIT").arg(1).arg(PATIENCE.as_millis() as u64);
    let (replicas,): (u64,) = wait.query_async(connection).await.expect("an answer to WAIT");
    assert!(replicas > 0, "no replica has all");
}
