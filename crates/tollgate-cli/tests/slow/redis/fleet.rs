//! Two shards, each with a primary and a replica, and policies for them.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::kit::{QUICK, Server};
use crate::support::world::Proxy;

/// The shards' names.
pub(crate) const SHARDS: [&str; 2] = ["a", "b"];

/// The servers, stopped when dropped.
pub(crate) struct Fleet {
    pub(crate) primaries: [Server; 2],
    pub(crate) replicas: [Server; 2],
    folder: TempDir,
}

impl Fleet {
    /// Starts the servers and waits until the replicas are in sync.
    pub(crate) async fn start() -> Self {
        let primaries = [Server::start_with(&QUICK).await, Server::start_with(&QUICK).await];
        let replicas = [Server::start_with(&QUICK).await, Server::start_with(&QUICK).await];
        for (replica, primary) in replicas.iter().zip(&primaries) {
            replica.follow(primary).await;
        }
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("secret"), "the same on every node").unwrap();
        Self { primaries, replicas, folder }
    }

    /// Returns a policy file for the shards: `text` contains its limits and rules, `store` more
    /// settings of its store.
    pub(crate) fn policy(&self, text: &str, store: &str) -> PathBuf {
        let shard = |shard: usize| {
            let (primary, replica) = (self.primaries[shard].url(), self.replicas[shard].url());
            format!("{}: {{ primary: \"{primary}\", replicas: \"{replica}\" }}", SHARDS[shard])
        };
        let secret = self.folder.path().join("secret");
        let text = format!(
            "subjects: {{ token: {{ header: authorization }}, address: {{ client_address: {{}} }} }}\n\
             {text}\n\
             secret: {{ file: \"{}\" }}\n\
             store: {{ redis: {{ shards: {{ {}, {} }}, route_by: token, {store} }} }}\n",
            secret.display(),
            shard(0),
            shard(1),
        );
        let path = self.folder.path().join("policy.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the number of client keys on the primary of each shard.
    pub(crate) async fn keys(&self) -> [usize; 2] {
        [counters(&self.primaries[0]).await, counters(&self.primaries[1]).await]
    }

    /// Returns a token with its limits on the shard with this number, and charges it once.
    pub(crate) async fn token_on(&self, shard: usize, proxy: &Proxy) -> String {
        for number in 0..64 {
            let token = format!("authorization: Bearer {shard}-{number}");
            let before = self.keys().await;
            assert_eq!(proxy.get("/", &[&token]).status, 200);
            if self.keys().await[shard] > before[shard] {
                return token;
            }
        }
        panic!("64 tokens on one of two shards: are clients spread?");
    }
}

/// Matches the keys of clients. Nodes also store which map they use and whether keys were lost.
async fn counters(server: &Server) -> usize {
    let is_of_nodes = |key: &Vec<u8>| {
        key.starts_with(b"tg1:tollgate.map:") || key.starts_with(b"tg1:{generation}")
    };
    server.keys().await.iter().filter(|key| !is_of_nodes(key)).count()
}
