//! A process that was started here, and ends with its value.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::error::ChaosError;

/// A process of our own. Only such are ever signalled.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts `program` in `directory`, without a terminal.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start(
        program: &Path,
        directory: &Path,
        arguments: &[String],
    ) -> Result<Self, ChaosError> {
        Self::spawn(program, directory, arguments, [Stdio::null(), Stdio::null()])
    }

    /// As [`start`](Self::start), with what it says written to `log`.
    ///
    /// # Errors
    /// If it cannot be started, or the file not be made.
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

    /// Stops it where it is: its sockets stay, and nothing answers.
    pub(crate) fn freeze(&self) -> Result<(), ChaosError> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) -> Result<(), ChaosError> {
        self.signal(Signal::CONT)
    }

    /// Has it read its configuration anew, as services do on SIGHUP.
    pub(crate) fn hang_up(&self) -> Result<(), ChaosError> {
        self.signal(Signal::HUP)
    }

    /// Tells it to end, as service managers do by SIGTERM.
    pub(crate) fn terminate(&self) -> Result<(), ChaosError> {
        self.signal(Signal::TERM)
    }

    /// Ends it at once; what it had not written is lost.
    pub(crate) fn kill(&mut self) -> Result<(), ChaosError> {
        let process = self.0.id();
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.map(|_| ()).map_err(|error| ChaosError::Signal(process, error))
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Whether it has ended, by itself and without a complaint.
    pub(crate) fn has_succeeded(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(Some(status)) if status.success())
    }

    /// Only before it was seen to have ended: until then its number is its own.
    fn signal(&self, signal: Signal) -> Result<(), ChaosError> {
        let process = Pid::from_child(&self.0);
        kill_process(process, signal)
            .map_err(|error| ChaosError::Signal(self.0.id(), io::Error::from(error)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It keeps nothing that anybody needs; a frozen process ends as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
