//! Faults of servers: a server dies, freezes, or returns.

#![allow(dead_code, reason = "each test file uses the faults that it is about")]

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use tokio::net::TcpSocket;

use super::{Server, command, run};

impl Server {
    /// Returns the server's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL for the default user.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the server's directory, which is removed with the server.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Stops the server with SIGSTOP. The server's sockets stay open, but the server does not
    /// answer.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets the stopped server continue with SIGCONT.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Kills the server with SIGKILL. Connections to its port are refused from then on.
    pub fn kill(&mut self) {
        self.child.kill().expect("a server to kill");
        self.child.wait().expect("a server that died");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("a socket option");
        // If another process was faster, the port cannot be kept.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        self.held_port = socket.bind(address).is_ok().then_some(socket);
    }

    /// Starts the server again on its port with the data saved in its directory. Does not wait
    /// until the server is ready.
    pub fn start_again(&mut self, arguments: &[&str]) {
        self.held_port = None;
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
