//! The reasons why the step did not execute a job.

use std::fmt;

use tollgate_core::StoreError;

/// The reason why the step in the server did not execute a job. After [`Corrupt`](Self::Corrupt),
/// the job may have been charged. After every other error, nothing was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepError {
    /// The server is out of memory, and the job needs a key that does not exist yet.
    Full,
    /// The command arrived after its deadline.
    Late,
    /// The reply is not valid for this version of the step. It is unknown whether the job was
    /// charged.
    Corrupt,
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "Redis is out of memory for new keys: increase its maxmemory",
            Self::Late => "the command reached Redis after its deadline",
            Self::Corrupt => {
                "the step in Redis returned an invalid reply: check that all nodes run compatible \
                 versions"
            }
        })
    }
}

impl std::error::Error for StepError {}

impl From<StepError> for StoreError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Full => Self::Full,
            StepError::Late => Self::TimedOut,
            StepError::Corrupt => Self::Corrupt,
        }
    }
}
