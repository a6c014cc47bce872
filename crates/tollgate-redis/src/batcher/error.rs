//! Why a job has no answer.

use std::fmt;

use tollgate_core::StoreError;

use crate::cluster::Redirect;
use crate::error::StepError;

/// Why a batcher has no answer to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatcherError {
    /// The batcher is full. The job was not sent.
    Overloaded,
    /// The server cannot be reached, or cannot serve. The job was not carried out.
    Unavailable,
    /// There was no answer by the deadline. Whether the job was carried out is unknown; it is not
    /// once the deadline is over.
    TimedOut,
    /// The connection broke before the answer. Whether the job was carried out is unknown.
    Lost,
    /// The step did not decide.
    Step(StepError),
    /// The node of a cluster does not serve the job's slot. The job was not carried out.
    Redirected(Redirect),
    /// The server refused the call, with this code. Whether a job was carried out is unknown.
    Refused(String),
}

impl fmt::Display for BatcherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded => f.write_str(
                "too much waits for Redis already: give it a faster server or more shards",
            ),
            Self::Unavailable => f.write_str("Redis cannot be reached, or cannot serve"),
            Self::TimedOut => f.write_str("Redis did not answer by the deadline"),
            Self::Lost => f.write_str("the connection to Redis broke before it answered"),
            Self::Step(error) => error.fmt(f),
            Self::Redirected(redirect) => redirect.fmt(f),
            Self::Refused(code) => write!(
                f,
                "Redis answered the step with {code}; check the user's permissions and the server's log"
            ),
        }
    }
}

impl std::error::Error for BatcherError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Step(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BatcherError> for StoreError {
    fn from(error: BatcherError) -> Self {
        match error {
            BatcherError::Overloaded | BatcherError::Unavailable | BatcherError::Redirected(_) => {
                Self::Unavailable
            }
            BatcherError::TimedOut | BatcherError::Lost => Self::TimedOut,
            BatcherError::Step(error) => error.into(),
            BatcherError::Refused(_) => Self::Corrupt,
        }
    }
}
