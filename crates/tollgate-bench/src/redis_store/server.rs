//! A Redis server for the benchmark. It stores nothing on disk. Its process ends when the
//! [`Server`] is dropped.

use std::ffi::OsStr;
use std::io::{self, Error, ErrorKind};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::server;

/// A Redis server that is running.
#[derive(Debug)]
pub struct Server {
    process: server::Server,
    _directory: TempDir,
}

impl Server {
    /// Starts `program` on a free port of 127.0.0.1 and waits until it listens.
    ///
    /// # Errors
    /// If the program is missing, or does not listen within some seconds on any of several ports.
    pub fn start(program: &OsStr) -> io::Result<Self> {
        Self::start_with(program, None)
    }

    /// Starts `program` as [`start`](Self::start) does, with the server module at the path
    /// `module`.
    ///
    /// # Errors
    /// As for [`start`](Self::start), or if the module is missing.
    pub fn start_with(program: &OsStr, module: Option<&Path>) -> io::Result<Self> {
        let module = module.map(Path::canonicalize).transpose()?;
        let directory = TempDir::new()?;
        let process = server::Server::start(|port| {
            let mut command = Command::new(program);
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
            command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(directory.path());
            if let Some(module) = &module {
                command.arg("--loadmodule").arg(module);
            }
            command
        });
        let process = process.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let what = "install redis-server, or pass its path by --redis-server";
                Error::new(error.kind(), format!("{error}; {what}"))
            }
            _ => error,
        })?;
        Ok(Self { process, _directory: directory })
    }

    /// Returns the server's URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.process.address())
    }

    /// Returns the processor time that all threads of the server have used since their start.
    ///
    /// # Errors
    /// If the kernel does not provide the processor time, as for
    /// [`crate::processor_time::of_process`].
    pub fn processor_time(&self) -> io::Result<Duration> {
        self.process.processor_time()
    }
}
