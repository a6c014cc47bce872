//! Servers that follow each other.

use std::time::Duration;

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

    /// Waits until one replica has all that was written to this server.
    pub async fn is_followed(&self) {
        let mut connection = self.connect().await;
        let followed = async {
            loop {
                let info: String = redis::cmd("INFO")
                    .arg("replication")
                    .query_async(&mut connection)
                    .await
                    .expect("the state of replication");
                let written = field(&info, "master_repl_offset:");
                // slave0:ip=127.0.0.1,port=6379,state=online,offset=14,lag=0
                if field(&info, "slave0:").contains(&format!(",offset={written},")) {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, followed).await.expect("the replica has all");
    }

    /// Has the server carry out a command of an administrator's.
    pub async fn tell(&self, words: &[&str]) {
        let mut connection = self.connect().await;
        let told = redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut connection).await;
        told.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
}

fn field<'i>(info: &'i str, name: &str) -> &'i str {
    info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default()
}
