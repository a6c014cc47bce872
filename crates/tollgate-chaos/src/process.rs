//! A process that ends when its handle is dropped.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::error::ChaosError;

/// A process that this program started. The program sends signals only to such processes.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts `program` in `directory` without a terminal.
    ///
    /// # Errors
    /// Returns an error if `program` cannot be started.
    pub(crate) fn start(
        program: &Path,
        directory: &Path,
        arguments: &[String],
    ) -> Result<Self, ChaosError> {
        Self::spawn(program, directory, arguments, [Stdio::null(), Stdio::null()])
    }

    /// Starts a process like [`start`](Self::start), and writes the output to `log`.
    ///
    /// # Errors
    /// Returns an error if `program` cannot be started, or the file cannot be created.
    pub(crate) fn start_with_output(
        program: &Path,
        directory: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<Self, ChaosError> {
        let file = File::create(log).and_then(|file| Ok([file.try_clone()?, file]));
        let files = file.map_err(|error| ChaosError::File(log.to_owned(), error))?;
        Self::spawn(program, directory, arguments, files.map(Stdio::from))
    }

    fn spawn(
        program: &Path,
        directory: &Path,
        arguments: &[String],
        [stdout, stderr]: [Stdio; 2],
    ) -> Result<Self, ChaosError> {
        Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map(Self)
            .map_err(|error| ChaosError::Start(program.to_owned(), error))
    }

    /// Stops the process with SIGSTOP. Its sockets stay open, and the process does not answer.
    pub(crate) fn freeze(&self) -> Result<(), ChaosError> {
        self.signal(Signal::STOP)
    }

    /// Lets the stopped process continue.
    pub(crate) fn thaw(&self) -> Result<(), ChaosError> {
        self.signal(Signal::CONT)
    }

    /// Sends SIGHUP to the process. Services reload their configuration on this signal.
    pub(crate) fn hang_up(&self) -> Result<(), ChaosError> {
        self.signal(Signal::HUP)
    }

    /// Sends SIGTERM, the signal with which service managers end a process.
    pub(crate) fn terminate(&self) -> Result<(), ChaosError> {
        self.signal(Signal::TERM)
    }

    /// Kills the process. Data that the process has not written to disk is lost.
    pub(crate) fn kill(&mut self) -> Result<(), ChaosError> {
        let process = self.0.id();
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.map(|_| ()).map_err(|error| ChaosError::Signal(process, error))
    }

    /// Returns whether the process is running.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Returns whether the process has ended by itself with success.
    pub(crate) fn has_succeeded(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(Some(status)) if status.success())
    }

    /// Sends a signal to the process. The system cannot have given the id to another process,
    /// because this program has not called `wait` for the process yet.
    fn signal(&self, signal: Signal) -> Result<(), ChaosError> {
        let process = Pid::from_child(&self.0);
        kill_process(process, signal)
            .map_err(|error| ChaosError::Signal(self.0.id(), io::Error::from(error)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The data of the process is not needed. SIGKILL also ends a frozen process.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
