//! What happens to servers: they die, freeze, and come back.

#![allow(dead_code, reason = "each test file uses the faults that it is about")]

use std::process::Command;

use super::{Server, command, run};

impl Server {
    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it is reached by the default user.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The directory that is gone with the server.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Stops it as SIGSTOP does: its sockets stay, and nothing answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Ends it at once, as SIGKILL does.
    pub fn kill(&mut self) {
        self.child.kill().expect("a server to kill");
        self.child.wait().expect("a server that died");
    }

    /// Starts it again on its port, with what it saved in its directory. Does not wait for it.
    pub fn start_again(&mut self, arguments: &[&str]) {
        self.child = run(&mut command(self.version, self.port, self.directory.path(), arguments));
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status()
            .expect("the program kill");
        assert!(status.success(), "kill {name} failed: {status}");
    }
}
