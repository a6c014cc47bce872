//! Sentinels that monitor pairs of servers.

use std::fmt::Write;
use std::fs;

use crate::error::ChaosError;
use crate::process::Process;
use crate::server::{Server, free_port};
use crate::site::{Pair, Site};
use crate::wait::until;

/// The number of sentinels. Two sentinels must agree that a primary is down.
const SENTINELS: usize = 3;
/// The silence in milliseconds after which a sentinel marks a server as down.
const DOWN_AFTER_MILLIS: u32 = 1_000;

/// A primary and its replica, with the name under which the sentinels monitor them.
#[derive(Debug)]
pub(crate) struct MonitoredPair {
    /// The name under which the sentinels monitor the pair.
    pub(crate) name: &'static str,
    /// The primary and its replica.
    pub(crate) pair: Pair,
}

/// A set of sentinels. The sentinels end when the value is dropped.
#[derive(Debug)]
pub(crate) struct Sentinels {
    ports: Vec<u16>,
    _processes: Vec<Process>,
}

impl Sentinels {
    /// Starts sentinels for `watched` and waits until every sentinel has found the other sentinels
    /// and the replicas.
    pub(crate) async fn start(site: &Site, watched: &[MonitoredPair]) -> Result<Self, ChaosError> {
        let (mut ports, mut processes) = (Vec::new(), Vec::new());
        for _ in 0..SENTINELS {
            let (room, port) = (site.room()?, free_port()?);
            let path = room.join("sentinel.conf");
            fs::write(&path, config(port, watched))
                .map_err(|error| ChaosError::File(path.clone(), error))?;
            let words = [path.display().to_string(), "--sentinel".to_owned()];
            processes.push(Process::start(site.redis(), &room, &words)?);
            ports.push(port);
        }
        let sentinels = Self { ports, _processes: processes };
        let ready = async || sentinels.know_all(watched).await;
        until("that sentinels know all servers", ready).await?;
        Ok(sentinels)
    }

    /// Returns the settings of the shard with this name for a policy.
    pub(crate) fn words(&self, name: &str) -> String {
        let urls: Vec<_> = self.ports.iter().map(|port| format!("'{}'", url(*port))).collect();
        format!("{{ sentinels: [{}], service: {name} }}", urls.join(", "))
    }

    async fn know_all(&self, watched: &[MonitoredPair]) -> Result<bool, ChaosError> {
        for port in &self.ports {
            for MonitoredPair { name, .. } in watched {
                let queries = [["SENTINEL", "SENTINELS", name], ["SENTINEL", "REPLICAS", name]];
                for (command, most) in queries.iter().zip([SENTINELS - 1, 1]) {
                    // The sentinel may not listen yet.
                    let reply = Server::query_at::<Vec<redis::Value>>(*port, command).await;
                    if reply.map_or(0, |reply| reply.len()) < most {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

fn config(port: u16, watched: &[MonitoredPair]) -> String {
    let mut config = format!("bind 127.0.0.1\nport {port}\n");
    for MonitoredPair { name, pair } in watched {
        let primary = pair.primary.port();
        let _ = write!(
            config,
            "sentinel monitor {name} 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds {name} {DOWN_AFTER_MILLIS}\n\
             sentinel failover-timeout {name} 5000\n"
        );
    }
    config
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}
