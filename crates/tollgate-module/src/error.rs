//! The reasons why a command is rejected.

use std::fmt;

/// The reason why a command was rejected. A rejected command changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandError {
    /// The argument ends before all its parts were read.
    Short,
    /// A part of the argument is not valid. The value is the name of the part.
    Invalid(&'static str),
    /// A command that only reads contains a job that writes.
    Writes,
    /// The command names a key twice.
    RepeatedKey,
    /// The command uses a key as a table, and the value of the key is not a table of this version.
    NotATable,
    /// The server rejected a write.
    NotWritten,
    /// The code of the module panicked, which is a defect.
    Panicked,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ERR tollgate: ")?;
        match self {
            Self::Short => f.write_str("the argument is cut short"),
            Self::Invalid(part) => write!(f, "invalid {part}"),
            Self::Writes => {
                f.write_str("this command only reads; send jobs that write by TOLLGATE.STEP")
            }
            Self::RepeatedKey => f.write_str("a key is named twice"),
            Self::NotATable => f.write_str(
                "the value of a table key is not a table of this version; delete the key or load \
                 the version that wrote it",
            ),
            Self::NotWritten => f.write_str("the server rejected a write"),
            Self::Panicked => f.write_str("the step failed; please report this defect"),
        }
    }
}

impl std::error::Error for CommandError {}
