//! `tollgate serve` with an HTTP listener.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A node, which is stopped when this value is dropped.
pub(crate) struct Tollgate {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Tollgate {
    pub(crate) fn start(policy: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--http", "127.0.0.1:0", "--policy"])
            .arg(policy)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut response = String::new();
        let address = loop {
            let Some(Ok(line)) = lines.next() else { panic!("it ended with:\n{response}") };
            if let Some(address) = line.strip_prefix("http at ") {
                break address.parse().unwrap();
            }
            response += &format!("{line}\n");
        };
        // The remaining output is read and discarded, so the process does not block.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, address }
    }

    /// Kills the process.
    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Tollgate {
    fn drop(&mut self) {
        self.stop();
    }
}
