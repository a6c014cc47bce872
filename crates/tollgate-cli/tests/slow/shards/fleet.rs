//! Policies for shard maps, and clients of processes with these policies.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use crate::kit::Server;
use crate::support::client::Client;
use crate::support::node::{Folder, Node, command};

/// The quota of each subject.
pub(crate) const QUOTA: usize = 40;

/// Redis servers, and policies that use them as shards.
pub(crate) struct Fleet {
    pub(crate) servers: Vec<Server>,
    scripting: &'static str,
    folder: Folder,
}

impl Fleet {
    /// Starts this number of servers, named `s0`, `s1` and so on.
    pub(crate) async fn start(count: usize) -> Self {
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(Server::start().await);
        }
        Self::over(servers)
    }

    /// Creates a fleet of these servers.
    pub(crate) fn over(servers: Vec<Server>) -> Self {
        let folder = Folder::with("");
        folder.write("secret", "the same on every node");
        Self { servers, scripting: "auto", folder }
    }

    /// Sets the form in which the step runs on all servers.
    pub(crate) fn with_scripting(self, scripting: &'static str) -> Self {
        Self { scripting, ..self }
    }

    /// Returns a policy for the shards with these numbers. `before` contains the numbers of the
    /// shards in the previous map.
    pub(crate) fn policy(&self, name: &str, shards: &[usize], before: Option<&[usize]>) -> PathBuf {
        let map = |shards: &[usize]| {
            let shard = |number: &usize| {
                format!("s{number}: {{ primary: \"{}\" }}", self.servers[*number].url())
            };
            shards.iter().map(shard).collect::<Vec<_>>().join(", ")
        };
        let previous =
            before.map(|before| format!("previous: {{ shards: {{ {} }} }}, ", map(before)));
        let text = format!(
            "subjects: {{ token: {{ header: authorization }} }}\n\
             limits: {{ core: {{ quota: {QUOTA}, window: 1h, per: token }} }}\n\
             rules: [ {{ limits: core }} ]\n\
             secret: {{ file: \"{}\" }}\n\
             store: {{ redis: {{ shards: {{ {} }}, {} scripting: {}, deadline: 10s }} }}\n",
            self.folder.path("secret").display(),
            map(shards),
            previous.unwrap_or_default(),
            self.scripting,
        );
        self.folder.write(name, &text);
        self.folder.path(name)
    }
}

/// Starts a process with the policy at `path`.
pub(crate) fn node(path: &Path) -> Node {
    let any = "127.0.0.1:0";
    Node::start(command(path, &["--http", any, "--admin", any]))
}

/// `tollgate shards ARGUMENTS…`.
pub(crate) fn shards(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("shards").args(arguments).output().unwrap()
}

/// Charges each of `tokens` `times` times at each of `nodes` concurrently, and counts the admitted
/// units of each token. The store makes every decision.
pub(crate) fn charge(nodes: &[&Node], tokens: usize, times: usize) -> Vec<usize> {
    let mut admitted = vec![0; tokens];
    thread::scope(|scope| {
        let clients: Vec<_> = nodes
            .iter()
            .map(|node| scope.spawn(|| charge_at(node.listener("http"), tokens, times)))
            .collect();
        for client in clients {
            let counts = client.join().unwrap();
            admitted.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        }
    });
    admitted
}

fn charge_at(address: &str, tokens: usize, times: usize) -> Vec<usize> {
    let mut client = Client::connect(address).unwrap();
    let mut admitted = vec![0; tokens];
    for _ in 0..times {
        for (token, admitted) in admitted.iter_mut().enumerate() {
            let body = format!(
                "{{\"limits\":[{{\"name\":\"core\",\"subject\":{{\"token\":\"t{token}\"}}}}]}}"
            );
            let length = body.len();
            client
                .send(format!(
                    "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                     content-length: {length}\r\n\r\n{body}"
                ))
                .unwrap();
            let answer = client.answer().unwrap();
            assert_eq!(answer.status, 200, "{}", answer.body);
            *admitted += usize::from(answer.body.contains("\"admitted\":true"));
        }
    }
    admitted
}
