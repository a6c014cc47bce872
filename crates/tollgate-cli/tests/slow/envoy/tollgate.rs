//! `tollgate serve` with one listener.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process of `tollgate serve` with a gRPC listener. The process is stopped when this value is
/// dropped.
pub(crate) struct Tollgate {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Tollgate {
    /// Starts on a port that the system chooses, and waits until the listener is open.
    pub(crate) fn start(policy: &Path) -> Self {
        Self::start_at("127.0.0.1:0", policy)
    }

    /// Starts at `address`, and waits until the listener is open.
    pub(crate) fn start_at(address: &str, policy: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--grpc", address, "--policy"])
            .arg(policy)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut response = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut before = String::new();
        let address = loop {
            let Some(Ok(line)) = response.next() else {
                panic!("no listener was opened:\n{before}")
            };
            if let Some(address) = line.strip_prefix("grpc at ") {
                break address.parse().unwrap();
            }
            before.push_str(&line);
        };
        // The further output is read and discarded, so the process does not block.
        std::thread::spawn(move || response.for_each(drop));
        Self { child, address }
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Tollgate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
