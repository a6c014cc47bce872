//! The errors because of which a scenario cannot be run. A bound that did not hold is a finding,
//! not an error.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use tollgate::model::LimitError;
use tollgate_backend::OpenError;
use tollgate_policy::PolicyErrors;

/// The reason why a scenario could not be run.
#[derive(Debug)]
pub(crate) enum ChaosError {
    /// The directory for the servers could not be created.
    Directory(io::Error),
    /// A file for a server could not be written.
    File(PathBuf, io::Error),
    /// No free port was found, or the program could not listen on the port.
    Port(io::Error),
    /// A program could not be started.
    Start(PathBuf, io::Error),
    /// A server did not answer in time after its start.
    NotReady(PathBuf, Duration),
    /// A process could not be stopped, continued or ended by a signal.
    Signal(u32, io::Error),
    /// A server did not execute a command.
    Command(String, redis::RedisError),
    /// A node does not serve, or ended with an error. The value is the node's output.
    Node(String),
    /// A node's listener did not answer a request. The values are the URL and the reason.
    Operation(String, String),
    /// An expected event did not happen in time.
    WaitTimedOut(&'static str, Duration),
    /// The scenario's policy is not valid.
    Policy(PolicyErrors),
    /// The scenario's limit is not valid.
    Limit(LimitError),
    /// The scenario's store cannot be opened.
    Open(OpenError),
}

impl fmt::Display for ChaosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(error) => {
                write!(
                    f,
                    "no directory for the servers: {error}; set TMPDIR to one that is writable"
                )
            }
            Self::File(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            Self::Port(error) => write!(f, "no loopback port: {error}"),
            Self::Start(program, error) => write!(
                f,
                "cannot start {}: {error}; name the program with --redis-server, --memcached or --tollgate",
                program.display()
            ),
            Self::NotReady(program, within) => write!(
                f,
                "{} did not answer within {within:?}; does it start by hand?",
                program.display()
            ),
            Self::Signal(process, error) => write!(f, "cannot signal process {process}: {error}"),
            Self::Command(words, error) => write!(f, "the server did not {words}: {error}"),
            Self::Node(said) => write!(f, "a node failed; its output:\n{said}"),
            Self::Operation(listener, why) => write!(f, "{listener} did not answer: {why}"),
            Self::WaitTimedOut(what, within) => {
                write!(f, "{what} did not happen within {within:?}")
            }
            Self::Policy(errors) => errors.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Limit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChaosError {}

impl ChaosError {
    /// Returns whether the error is a server's answer with the error code `code`, such as
    /// `LOADING`.
    pub(crate) fn is_answer(&self, code: &str) -> bool {
        matches!(self, Self::Command(_, error) if error.code() == Some(code))
    }
}
