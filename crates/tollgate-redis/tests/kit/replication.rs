//! Servers that follow each other.

use std::time::Duration;

use redis::aio::MultiplexedConnection;

use super::{PATIENCE, Server};

/// Between two looks at what replication has done.
const PAUSE: Duration = Duration::from_millis(5);

/// Has a primary send its state at once, not only after more replicas have had time to come.
pub const QUICK: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

impl Server {
    /// Follows `leader`, and waits until it is in step.
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

    /// Becomes a replica of `leader`, which refuses writes from now on.
    pub async fn begin_to_follow(&self, leader: &Self) {
        self.tell(&["REPLICAOF", "127.0.0.1", &leader.port().to_string()]).await;
    }

    /// Becomes a primary.
    pub async fn promote(&self) {
        self.tell(&["REPLICAOF", "NO", "ONE"]).await;
    }

    /// Waits until a replica has all that was written to this server.
    pub async fn is_followed(&self) {
        wait_for_replica(&mut self.connect().await).await;
    }

    /// Has the server carry out a command of an administrator's.
    pub async fn tell(&self, words: &[&str]) {
        let mut connection = self.connect().await;
        let told = redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut connection).await;
        told.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
}

/// Waits until a replica has all that was written to the server at the other end.
pub async fn wait_for_replica(connection: &mut MultiplexedConnection) {
    let mut wait = redis::pipe();
    // WAIT is for what was written until this connection's last write; some servers take any
    // command for one, and some do not.
    wait.cmd("SET").arg("waited").arg("").arg("PX").arg(PATIENCE.as_millis() as u64).ignore();
    wait.cmd("WAIT").arg(1).arg(PATIENCE.as_millis() as u64);
    let (replicas,): (u64,) = wait.query_async(connection).await.expect("an answer to WAIT");
    assert!(replicas > 0, "no replica has all");
}
