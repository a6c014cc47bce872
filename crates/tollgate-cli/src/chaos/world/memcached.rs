//! A memcached of the run's own.

use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::chaos::error::ChaosError;
use crate::chaos::process::Process;
use crate::chaos::server::free_port;
use crate::chaos::wait::{PATIENCE, until};

/// A memcached on a loopback port, gone with its value.
#[derive(Debug)]
pub(crate) struct MemcachedServer {
    _process: Process,
    port: u16,
}

impl MemcachedServer {
    /// Starts `program` in `directory`, and waits until it answers.
    pub(crate) async fn start(program: PathBuf, directory: PathBuf) -> Result<Self, ChaosError> {
        let port = free_port()?;
        let words = ["-l", "127.0.0.1", "-U", "0", "-m", "64", "-p"].map(str::to_owned);
        let mut words = Vec::from(words);
        words.push(port.to_string());
        if rustix::process::geteuid().is_root() {
            // It refuses to run as root unless it is told who to become.
            words.extend(["-u".to_owned(), "root".to_owned()]);
        }
        let process = Process::start(&program, &directory, &words)?;
        until("that memcached answers", async || Ok(answers(port).await.unwrap_or(false)))
            .await
            .map_err(|_| ChaosError::NotReady(program, PATIENCE))?;
        Ok(Self { _process: process, port })
    }

    /// Where it is reached.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

async fn answers(port: u16) -> std::io::Result<bool> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    connection.write_all(b"version\r\n").await?;
    let mut said = [0; 7];
    connection.read_exact(&mut said).await?;
    Ok(said == *b"VERSION")
}
