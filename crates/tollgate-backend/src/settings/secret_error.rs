//! The errors of reading a secret.

use std::env::VarError;
use std::path::PathBuf;
use std::{error, fmt, io};

/// The shortest secret that is accepted, in bytes.
pub const SHORTEST_SECRET: usize = 16;

/// The reason why the secret of the hash key cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SecretError {
    /// The environment variable is not set, or is not UTF-8.
    Environment {
        /// The variable's name.
        name: String,
        /// The reason why the variable cannot be read.
        error: VarError,
    },
    /// The file cannot be read.
    File {
        /// The file's path.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The secret is shorter than [`SHORTEST_SECRET`] and could be guessed.
    Short {
        /// The length of the secret in bytes.
        bytes: usize,
    },
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment { name, error: VarError::NotPresent } => {
                write!(f, "the environment variable {name} is not set; ")?;
                write!(f, "for a new key: export {name}=$(openssl rand -hex 16)")
            }
            Self::Environment { name, .. } => {
                write!(f, "the environment variable {name} is not UTF-8")
            }
            Self::File { path, error } => {
                write!(f, "the file {} cannot be read: {error}", path.display())
            }
            Self::Short { bytes } => write!(
                f,
                "the secret has {bytes} bytes; at least {SHORTEST_SECRET} are required: make one \
                 with `openssl rand -hex 16`"
            ),
        }
    }
}

impl error::Error for SecretError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Environment { error, .. } => Some(error),
            Self::File { error, .. } => Some(error),
            Self::Short { .. } => None,
        }
    }
}
