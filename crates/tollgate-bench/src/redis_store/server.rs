//! A Redis server of the benchmark's own: it keeps nothing on disk, and is gone with its value.

use std::ffi::OsStr;
use std::io::{self, Error, ErrorKind};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::server;

/// A running server.
#[derive(Debug)]
pub struct Server {
    process: server::Server,
    _directory: TempDir,
}

impl Server {
    /// Starts `program` on a free port of 127.0.0.1 and waits until it listens.
    ///
    /// # Errors
    /// If the program is missing, or does not listen after some seconds on any of several ports.
    pub fn start(program: &OsStr) -> io::Result<Self> {
        let directory = TempDir::new()?;
        let process = server::Server::start(|port| {
            let mut command = Command::new(program);
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
            command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(directory.path());
            command
        });
        let process = process.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let what = "install redis-server, or name it by --redis-server";
                Error::new(error.kind(), format!("{error}; {what}"))
            }
            _ => error,
        })?;
        Ok(Self { process, _directory: directory })
    }

    /// Where clients reach it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.process.address())
    }

    /// The processor time of all its threads since it started.
    ///
    /// # Errors
    /// If the kernel does not tell, as [`crate::processor_time::of_process`] says.
    pub fn processor_time(&self) -> io::Result<Duration> {
        self.process.processor_time()
    }
}
