//! Why a job has no answer.

use std::fmt;

use tollgate_core::StoreError;

/// Why the step in the server did not decide a job. Nothing of it was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepError {
    /// The server is out of memory, and the job needs a key that does not exist yet.
    Full,
    /// The command arrived after its deadline.
    Late,
    /// The reply is not what a step of this version answers. What was charged is unknown.
    Corrupt,
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "Redis is out of memory for new keys: raise its maxmemory",
            Self::Late => "the command reached Redis after its deadline",
            Self::Corrupt => {
                "the reply of the step in Redis makes no sense: is it of another version?"
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
