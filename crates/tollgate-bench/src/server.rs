//! A server for the benchmark. Its process ends when the [`Server`] is dropped.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::processor_time;

/// The largest number of ports that are tried. Another process can take a free port before the
/// server does.
const PORT_TRIES: usize = 10;
/// The largest number of checks whether a server has started. [`READY_PAUSE`] is the pause between
/// two checks.
const READY_TRIES: usize = 1_500;
const READY_PAUSE: Duration = Duration::from_millis(20);

/// A server process that is running.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    stderr: File,
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1, and waits until it listens. `command` returns
    /// the command for a port.
    ///
    /// # Errors
    /// If the program cannot be started, or does not listen within half a minute on any of several
    /// ports. The error contains the program's output.
    pub fn start(command: impl Fn(u16) -> Command) -> io::Result<Self> {
        let mut stderr = String::new();
        for _ in 0..PORT_TRIES {
            let mut server = Self::spawn(&command)?;
            if server.listens()? {
                return Ok(server);
            }
            stderr = server.stderr()?;
        }
        let what = format!("did not listen on any of {PORT_TRIES} ports: {stderr}");
        Err(Error::new(ErrorKind::AddrNotAvailable, what))
    }

    /// Returns the server's address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), self.port)
    }

    /// Returns the server's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the processor time that all threads of the server have used since their start.
    ///
    /// # Errors
    /// If the kernel does not provide the processor time, as for [`processor_time::of_process`].
    pub fn processor_time(&self) -> io::Result<Duration> {
        processor_time::of_process(self.child.id())
    }

    /// Returns the part of the server's processor time that was spent in the kernel.
    ///
    /// # Errors
    /// As for [`processor_time::in_kernel`].
    pub fn kernel_time(&self) -> io::Result<Duration> {
        processor_time::in_kernel(self.child.id())
    }

    /// Terminates the process, waits until it has ended, and returns its standard error output.
    ///
    /// # Errors
    /// If the process cannot be terminated, or waiting for it fails.
    pub fn end(mut self) -> io::Result<String> {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM)?;
        self.child.wait()?;
        self.stderr()
    }

    fn spawn(command: &impl Fn(u16) -> Command) -> io::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let stderr = tempfile::tempfile()?;
        let mut command = command(port);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr.try_clone()?);
        let child = command.spawn().map_err(|error| {
            let program = command.get_program().display();
            Error::new(error.kind(), format!("{program} cannot be started: {error}"))
        })?;
        Ok(Self { child, port, stderr })
    }

    /// Waits until the server listens. Returns `true` if it listens. Returns `false` if its process
    /// ends first, or if it does not listen in time.
    fn listens(&mut self) -> io::Result<bool> {
        for _ in 0..READY_TRIES {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            if TcpStream::connect(self.address()).is_ok() {
                return Ok(true);
            }
            thread::sleep(READY_PAUSE);
        }
        Ok(false)
    }

    fn stderr(&mut self) -> io::Result<String> {
        let mut stderr = Vec::new();
        self.stderr.seek(SeekFrom::Start(0))?;
        self.stderr.read_to_end(&mut stderr)?;
        Ok(String::from_utf8_lossy(&stderr).into_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL loses no data, because the server stores nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
