//! The output of commands.

use std::io::{self, Write};

use crate::failure::Failure;

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text for people.
    Text,
    /// JSON for programs.
    Json,
}

/// Prints on standard output. A reader that closes the pipe early, such as `head`, is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints on standard error. It is not an error if no program reads the output.
pub(crate) fn note(text: &str) {
    // An error while writing to stderr cannot be reported anywhere.
    let _ = io::stderr().write_all(text.as_bytes());
}
