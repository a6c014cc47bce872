//! The processes of the benchmark: one Redis server, and nodes of `tollgate serve`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use redis::aio::MultiplexedConnection;
use tempfile::TempDir;

use super::case::{CASES, Case};
use crate::listeners::load::LoadError;
use crate::listeners::wire::DIMENSION;
use crate::redis_store::server::Server as Redis;
use crate::server::Server;

/// A Redis server, with the nodes that use it.
#[derive(Debug)]
pub struct Nodes {
    redis: Redis,
    stats_connection: MultiplexedConnection,
    nodes: Vec<Server>,
    _directory: TempDir,
}

/// The resources that a run has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// The processor time of all nodes together.
    pub nodes: Duration,
    /// The processor time of the Redis server.
    pub redis: Duration,
    /// The number of calls of the step in Redis. Each call decides one charge or a batch of
    /// charges.
    pub calls: u64,
}

impl Nodes {
    /// Starts a Redis server and `count` nodes. The policy of each node has `nodes: count`.
    ///
    /// # Errors
    /// If a program is missing or does not start.
    pub async fn start(
        tollgate: &Path,
        redis_server: &OsStr,
        count: usize,
        scale: u64,
    ) -> Result<Self, LoadError> {
        let redis = Redis::start(redis_server)?;
        let stats_connection =
            redis::Client::open(redis.url())?.get_multiplexed_async_connection().await?;
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("leases.yaml");
        fs::write(&file, policy(&redis.url(), count, scale))?;
        let node = |_| {
            Server::start(|port| {
                let mut command = Command::new(tollgate);
                command.args(["serve", "--resp", &format!("127.0.0.1:{port}"), "--policy"]);
                command.arg(&file).env("TOLLGATE_SECRET", "the secret of this benchmark");
                command
            })
        };
        let nodes = (0..count).map(node).collect::<io::Result<_>>()?;
        Ok(Self { redis, stats_connection, nodes, _directory: directory })
    }

    /// Returns the processes of the nodes.
    #[must_use]
    pub fn all(&self) -> &[Server] {
        &self.nodes
    }

    /// Returns the processor time that the nodes and Redis have used so far, and the number of
    /// calls that Redis has executed.
    ///
    /// # Errors
    /// If the kernel does not provide the processor time, or Redis does not provide the number of
    /// calls.
    pub async fn usage(&mut self) -> Result<Usage, LoadError> {
        let info: String =
            redis::cmd("INFO").arg("commandstats").query_async(&mut self.stats_connection).await?;
        let mut nodes = Duration::ZERO;
        for node in &self.nodes {
            nodes += node.processor_time()?;
        }
        Ok(Usage { nodes, redis: self.redis.processor_time()?, calls: calls(&info) })
    }
}

impl Usage {
    /// Returns the resources that were used after `before` was measured.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_sub(before.nodes),
            redis: self.redis.saturating_sub(before.redis),
            calls: self.calls.saturating_sub(before.calls),
        }
    }
}

/// Returns the policy of the nodes, which has a limit for each case. `count` is the number of
/// nodes, `url` is the URL of the Redis server, and `scale` is the number of charges in a round.
#[must_use]
pub fn policy(url: &str, count: usize, scale: u64) -> String {
    let limit = |case: &Case| {
        let Case { limit, mode, .. } = case;
        let quota = case.quota(scale);
        format!("  {limit}: {{ quota: {quota}, window: 1h, per: [{DIMENSION}], mode: {mode} }}\n")
    };
    let limits: String = CASES.iter().map(limit).collect();
    let names = CASES.map(|case| case.limit).join(", ");
    format!(
        "secret: {{ env: TOLLGATE_SECRET }}\n\
         subjects:\n  {DIMENSION}: {{ header: x-tenant }}\n\
         limits:\n{limits}\
         rules:\n  - limits: [{names}]\n\
         store: {{ redis: {{ shards: {{ a: {{ primary: \"{url}\" }} }}, nodes: {count}, deadline: 10s }} }}\n"
    )
}

/// Returns how often functions and scripts were called. `info` is the output of Redis'
/// `INFO commandstats`.
fn calls(info: &str) -> u64 {
    let steps = ["cmdstat_fcall:calls=", "cmdstat_evalsha:calls=", "cmdstat_eval:calls="];
    let count = |line: &str| -> Option<u64> {
        let counted = steps.iter().find_map(|step| line.strip_prefix(step))?;
        counted.split(',').next()?.parse().ok()
    };
    info.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_step_are_counted_and_no_others() {
        let info = "# Commandstats\r\ncmdstat_fcall:calls=12,usec=3\r\ncmdstat_ping:calls=9,usec=1\r\n\
                    cmdstat_evalsha:calls=5,usec=3\r\ncmdstat_fcall_ro:calls=7,usec=3\r\n";
        assert_eq!(calls(info), 17);
        assert_eq!(calls(""), 0);
    }

    #[test]
    fn the_policy_of_the_run_is_one() {
        let text = policy("redis://127.0.0.1:7101", 2, 50_000);
        let loaded = tollgate_policy::parse("leases.yaml", &text);
        let loaded = loaded.unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(loaded.policy.limits().len(), CASES.len());
    }
}
