//! A process that was started here, and ends with its value.

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
        Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
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

    /// The child is not waited for until `kill` or drop, so its number is still its own.
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
