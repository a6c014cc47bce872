//! The error type of every command.

/// The error of a command.
pub(crate) type Failure = Box<dyn std::error::Error>;
