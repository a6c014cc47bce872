//! A process with the arguments of a container, a chart or a package.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::packaging::files::run;

/// The environment of a node: names and values.
pub(crate) const SECRETS: [(&str, &str); 5] = [
    ("TOLLGATE_SECRET", "the same on every node"),
    ("TOLLGATE_TOKEN", "a token of sixteen bytes"),
    ("TOLLGATE_TOKENS", "a token of sixteen bytes"),
    ("TOLLGATE_ADMIN_TOKENS", "another token of sixteen"),
    ("TOLLGATE_ADMIN_TOKEN", "another token of sixteen"),
];

/// A process of `tollgate` with any arguments. The process is stopped when this value is dropped.
pub(crate) struct Node {
    child: Child,
    listeners: Vec<(String, String)>,
}

impl Node {
    /// Starts a process with `arguments` and the policy `policy`, and waits until its listeners are
    /// open. The `listeners` of the policy and of the arguments are opened on loopback, at ports
    /// that the system chooses.
    pub(crate) fn start(arguments: &[String], policy: &Path, listeners: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(arguments.iter().map(|argument| here(argument, policy)))
            .args(
                listeners
                    .iter()
                    .flat_map(|listener| [format!("--{listener}"), "127.0.0.1:0".to_owned()]),
            )
            .envs(SECRETS)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut response = BufReader::new(child.stderr.take().unwrap()).lines();
        let (mut listeners, mut before) = (Vec::new(), String::new());
        loop {
            let Some(Ok(line)) = response.next() else {
                panic!("{arguments:?}: no start:\n{before}")
            };
            if line.contains(" limit, ") || line.contains(" limits, ") {
                break;
            }
            if let Some((listener, address)) = line.split_once(" at ") {
                listeners.push((listener.to_owned(), address.to_owned()));
            }
            before += &format!("{line}\n");
        }
        // The further output is read and discarded, so the process does not block.
        std::thread::spawn(move || response.for_each(drop));
        Self { child, listeners }
    }

    /// Returns the address of a listener.
    pub(crate) fn listener(&self, name: &str) -> &str {
        let listener = self.listeners.iter().find(|(listener, _)| listener == name);
        &listener.unwrap_or_else(|| panic!("no {name} in {:?}", self.listeners)).1
    }

    /// Reloads the policy of the node, and returns the response with its status.
    pub(crate) fn reload(&self) -> String {
        let url = format!("http://{}/v1/policy/reload", self.listener("admin"));
        let (_, token) = SECRETS[3];
        let mut curl = Command::new("curl");
        curl.args(["-s", "-X", "POST", "-w", " %{http_code}", "-H"]);
        let response = run(curl.args([&format!("authorization: Bearer {token}"), &url]));
        String::from_utf8(response.stdout).unwrap()
    }

    /// Returns the names of the node's listeners, in order.
    pub(crate) fn listeners(&self) -> Vec<&str> {
        self.listeners.iter().map(|(listener, _)| listener.as_str()).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an argument with paths of this machine.
fn here(argument: &str, policy: &Path) -> String {
    match argument.parse::<SocketAddr>() {
        Ok(_) => "127.0.0.1:0".to_owned(),
        Err(_) => argument.replace("/etc/tollgate/policy.yaml", &policy.display().to_string()),
    }
}
