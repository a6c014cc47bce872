//! Policies written from the configuration of other rate limiters.

pub mod envoy_ratelimit;
mod note;
mod text;

pub use envoy_ratelimit::envoy_ratelimit;
pub use note::{Conversion, Note};

use std::fmt;

use crate::finding::{Finding, PolicyErrors};

/// A file of another rate limiter.
#[derive(Clone, Copy, Debug)]
pub struct SourceFile<'s> {
    /// Its name, as messages call it.
    pub name: &'s str,
    /// What it holds.
    pub text: &'s str,
}

/// A policy that was written from other files.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The policy file.
    pub policy: String,
    /// What became of each construct, in the order of the files.
    pub notes: Vec<Note>,
    /// What is hardly meant as it is written, with its place in the policy.
    pub warnings: Vec<Finding>,
}

/// Why no policy can be written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// Files that the other rate limiter would not load either, or that say what no policy can.
    Source(Vec<PolicyErrors>),
    /// The policy that they would become cannot be loaded: it is too large.
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
                write!(f, "the policy would not load: import fewer files at once\n\n{errors}")
            }
        }
    }
}

impl std::error::Error for ImportError {}
