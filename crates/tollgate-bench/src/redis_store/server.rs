//! A Redis server of the benchmark's own: it keeps nothing on disk, and is gone with its value.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Error, ErrorKind};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// How often a port is tried that another process may take first.
const PORT_TRIES: usize = 10;
/// How often a server that starts is asked whether it listens, and how long between.
const READY_TRIES: usize = 250;
const READY_PAUSE: Duration = Duration::from_millis(20);

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    _directory: TempDir,
}

impl Server {
    /// Starts `program` on a free port of 127.0.0.1 and waits until it listens.
    ///
    /// # Errors
    /// If the program is missing, or does not listen after some seconds on any of several ports.
    pub fn start(program: &OsStr) -> io::Result<Self> {
        for _ in 0..PORT_TRIES {
            let mut server = Self::spawn(program)?;
            if server.listens()? {
                return Ok(server);
            }
        }
        let what = format!("{} did not listen on any of {PORT_TRIES} ports", program.display());
        Err(Error::new(ErrorKind::AddrNotAvailable, what))
    }

    /// Where clients reach it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The processor time of all its threads since it started.
    ///
    /// # Errors
    /// If the kernel does not tell: this is Linux' `/proc/PID/task/TID/schedstat`, in nanoseconds,
    /// where `/proc/PID/stat` counts in hundredths of a second.
    pub fn processor_time(&self) -> io::Result<Duration> {
        let mut whole = Duration::ZERO;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let line = fs::read_to_string(task?.path().join("schedstat"))?;
            let nanos = line.split_ascii_whitespace().next().and_then(|ran| ran.parse().ok());
            let unknown = || Error::new(ErrorKind::InvalidData, format!("schedstat says {line:?}"));
            whole += Duration::from_nanos(nanos.ok_or_else(unknown)?);
        }
        Ok(whole)
    }

    fn spawn(program: &OsStr) -> io::Result<Self> {
        let directory = TempDir::new()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| {
                let what = "cannot be started: install redis-server, or name it by --redis-server";
                Error::new(error.kind(), format!("{} {what}: {error}", program.display()))
            })?;
        Ok(Self { child, port, _directory: directory })
    }

    /// Whether it listens, before it ends.
    fn listens(&mut self) -> io::Result<bool> {
        for _ in 0..READY_TRIES {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(true);
            }
            thread::sleep(READY_PAUSE);
        }
        Ok(false)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It keeps nothing, so there is nothing to say goodbye to.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
