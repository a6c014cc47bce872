//! A memcached server that a scenario starts.

use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::ChaosError;
use crate::process::Process;
use crate::server::free_port;
use crate::wait::{WAIT_TIMEOUT, until};

/// A memcached server on a loopback port, which ends when the value is dropped.
#[derive(Debug)]
pub(crate) struct MemcachedServer {
    program: PathBuf,
    directory: PathBuf,
    process: Process,
    port: u16,
}

impl MemcachedServer {
    /// Starts `program` in `directory` and waits until it answers.
    pub(crate) async fn start(program: PathBuf, directory: PathBuf) -> Result<Self, ChaosError> {
        let port = free_port()?;
        let process = Process::start(&program, &directory, &words(port))?;
        let server = Self { program, directory, process, port };
        server.is_ready().await?;
        Ok(server)
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<(), ChaosError> {
        self.process.kill()
    }

    /// Starts the server again on its port, without its data, and waits until it answers.
    pub(crate) async fn start_again(&mut self) -> Result<(), ChaosError> {
        self.process = Process::start(&self.program, &self.directory, &words(self.port))?;
        self.is_ready().await
    }

    /// Returns the server's address.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    async fn is_ready(&self) -> Result<(), ChaosError> {
        until("that memcached answers", async || Ok(answers(self.port).await.unwrap_or(false)))
            .await
            .map_err(|_| ChaosError::NotReady(self.program.clone(), WAIT_TIMEOUT))
    }
}

fn words(port: u16) -> Vec<String> {
    let mut words = vec!["-l", "127.0.0.1", "-U", "0", "-m", "64"];
    if rustix::process::geteuid().is_root() {
        // memcached does not run as root without an explicit user.
        words.extend(["-u", "root"]);
    }
    let port = port.to_string();
    words.extend(["-p", &port]);
    words.into_iter().map(str::to_owned).collect()
}

async fn answers(port: u16) -> std::io::Result<bool> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    connection.write_all(b"version\r\n").await?;
    let mut reply = [0; 7];
    connection.read_exact(&mut reply).await?;
    Ok(reply == *b"VERSION")
}
