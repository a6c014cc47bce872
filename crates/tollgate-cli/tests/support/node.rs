//! A process of `tollgate serve` and its output.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// The longest time that a test waits for an event. Even on a busy machine, every event comes
/// earlier.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A policy with a limit that no test reaches, for every listener.
pub(crate) const POLICY: &str = "
subjects: { address: { client_address: {} } }
limits: { many: { quota: 1000000, window: 1h, per: address }, all: { quota: 1000000, window: 1h } }
rules: [ { name: all, limits: many } ]
descriptors: [ { domain: edge, tree: [ { key: a, limit: all } ] } ]
";

/// A directory with a policy.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// Creates a directory with [`POLICY`], to which the text `serve` is appended.
    pub(crate) fn new(serve: &str) -> Self {
        Self::with(&format!("{POLICY}{serve}"))
    }

    /// Creates a directory with `policy`.
    pub(crate) fn with(policy: &str) -> Self {
        let folder = Self(TempDir::new().unwrap());
        folder.write("policy.yaml", policy);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn policy(&self) -> PathBuf {
        self.path("policy.yaml")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }
}

/// Returns the command `tollgate serve --policy POLICY FLAGS…`, not started.
pub(crate) fn command(policy: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(["serve", "--policy"]).arg(policy).args(flags);
    command
}

/// Returns the output of a process that must fail to start.
pub(crate) fn refused(policy: &Path, flags: &[&str]) -> String {
    let Output { status, stdout, stderr } = command(policy, flags).output().unwrap();
    assert!(!status.success());
    assert!(stdout.is_empty());
    String::from_utf8(stderr).unwrap()
}

/// Returns the message of a log line in either format.
pub(crate) fn message(line: &str) -> String {
    let response: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let message = response.and_then(|response| response["message"].as_str().map(str::to_owned));
    message.unwrap_or_else(|| line.to_owned())
}

/// A process, which is stopped when this value is dropped.
pub(crate) struct Node {
    child: Child,
    lines: Mutex<Receiver<String>>,
    /// The log lines that were printed before all listeners were open, without those that a test
    /// has already waited for.
    before: Mutex<VecDeque<String>>,
    response: Arc<Mutex<String>>,
    listeners: Vec<(String, String)>,
}

impl Node {
    /// Starts a process with every listener, at ports that the system chooses.
    pub(crate) fn open(policy: &Path) -> Self {
        let any = "127.0.0.1:0";
        let flags = ["--http", any, "--grpc", any, "--resp", any, "--admin", any];
        Self::start(command(policy, &flags))
    }

    /// Starts `command`, and waits until its listeners are open.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (teller, lines) = channel();
        let response = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let all = Arc::clone(&response);
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                *all.lock().unwrap() += &format!("{line}\n");
                // The lines stay available without a reader.
                let _ = teller.send(line);
            }
        });
        let (lines, before) = (Mutex::new(lines), Mutex::default());
        let mut node = Self { child, lines, before, response, listeners: Vec::new() };
        let mut before = VecDeque::new();
        loop {
            let line = node.next();
            match message(&line).split_once(" at ") {
                Some((listener, address)) if !listener.contains(' ') => {
                    node.listeners.push((listener.to_owned(), address.to_owned()));
                }
                _ if line.contains(" limit, ") || line.contains(" limits, ") => break,
                _ => before.push_back(line),
            }
        }
        node.before = Mutex::new(before);
        node
    }

    /// Returns the address of a listener.
    pub(crate) fn listener(&self, name: &str) -> &str {
        let listener = self.listeners.iter().find(|(listener, _)| listener == name);
        &listener.unwrap_or_else(|| panic!("no {name} in {:?}", self.listeners)).1
    }

    /// Waits for a log line that contains `words`.
    pub(crate) fn wait_for_log(&self, words: &str) -> String {
        loop {
            let line = self.next();
            if line.contains(words) {
                return line;
            }
        }
    }

    fn next(&self) -> String {
        if let Some(line) = self.before.lock().unwrap().pop_front() {
            return line;
        }
        let line = self.lines.lock().unwrap().recv_timeout(PATIENCE);
        line.unwrap_or_else(|error| panic!("{error} after:\n{}", self.response()))
    }

    /// Returns all log lines until now.
    pub(crate) fn response(&self) -> String {
        self.response.lock().unwrap().clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits until the process ends, and returns the exit code and all log lines.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        // The sender is dropped after the last line.
        while self.lines.lock().unwrap().recv_timeout(PATIENCE).is_ok() {}
        (code, self.response())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
