//! Generates policies from the configuration of other rate limiters.

pub mod envoy_ratelimit;
mod note;
mod text;

pub use envoy_ratelimit::envoy_ratelimit;
pub use note::{Conversion, Note};

use std::fmt;

use crate::finding::{Finding, PolicyErrors};

/// A configuration file of another rate limiter.
#[derive(Clone, Copy, Debug)]
pub struct SourceFile<'s> {
    /// The file name for messages.
    pub name: &'s str,
    /// The file's content.
    pub text: &'s str,
}

/// A policy that was generated from other files.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The text of the policy file.
    pub policy: String,
    /// The result of the conversion of each construct, in the order in which the files contain the
    /// constructs.
    pub notes: Vec<Note>,
    /// Warnings about the generated policy, with positions in its text.
    pub warnings: Vec<Finding>,
}

/// The reason why no policy can be generated.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// The files have mistakes that the other rate limiter also rejects, or constructs that no
    /// policy can express.
    Source(Vec<PolicyErrors>),
    /// The generated policy cannot be loaded because it is too large.
    Policy(PolicyErrors),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(files) => {
                for (index, errors) in files.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n\n" };
                    write!(f, "{separator}{errors}")?;
                }
                Ok(())
            }
            Self::Policy(errors) => {
                write!(f, "the policy is too large to load: import fewer files at once\n\n{errors}")
            }
        }
    }
}

impl std::error::Error for ImportError {}
