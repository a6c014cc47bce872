//! Sentinels that watch over pairs of servers.

use std::fmt::Write;
use std::fs;

use crate::error::ChaosError;
use crate::process::Process;
use crate::server::{Server, free_port};
use crate::site::{Pair, Site};
use crate::wait::until;

/// So many of them; two have to agree.
const SENTINELS: usize = 3;
/// For how long a server has to be silent before a sentinel calls it down.
const DOWN_AFTER_MILLIS: u32 = 1_000;

/// A pair with the name that the sentinels know it by.
#[derive(Debug)]
pub(crate) struct MonitoredPair {
    /// The name.
    pub(crate) name: &'static str,
    /// The servers.
    pub(crate) pair: Pair,
}

/// Sentinels, gone with the value.
#[derive(Debug)]
pub(crate) struct Sentinels {
    ports: Vec<u16>,
    _processes: Vec<Process>,
}

impl Sentinels {
    /// Starts sentinels over `watched`, and waits until all know of each other and of the replicas.
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

    /// The words of a policy's shard of this name.
    pub(crate) fn words(&self, name: &str) -> String {
        let urls: Vec<_> = self.ports.iter().map(|port| format!("'{}'", url(*port))).collect();
        format!("{{ sentinels: [{}], service: {name} }}", urls.join(", "))
    }

    async fn know_all(&self, watched: &[MonitoredPair]) -> Result<bool, ChaosError> {
        for port in &self.ports {
            for MonitoredPair { name, .. } in watched {
                let asked = [["SENTINEL", "SENTINELS", name], ["SENTINEL", "REPLICAS", name]];
                for (command, most) in asked.iter().zip([SENTINELS - 1, 1]) {
                    // It may not listen yet.
                    let told = Server::ask_at::<Vec<redis::Value>>(*port, command).await;
                    if told.map_or(0, |told| told.len()) < most {
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
