//! The error type of every command.

/// What a command reports when it fails.
pub(crate) type Failure = Box<dyn std::error::Error>;
