//! The reasons why a batcher has no answer to a job.

use std::fmt;

use tollgate_core::StoreError;

use crate::error::StepError;
use crate::redirect::Redirect;

/// The reason why a batcher has no answer to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatcherError {
    /// The queue is full. The job was not sent.
    Overloaded,
    /// The server cannot be reached, or cannot serve. The job was not executed.
    Unavailable,
    /// The server did not answer by the deadline. It is unknown whether the job was executed. The
    /// job is not executed after the deadline.
    TimedOut,
    /// The connection was closed before the answer arrived. It is unknown whether the job was
    /// executed.
    Lost,
    /// The step in the server returned an error instead of a decision.
    Step(StepError),
    /// The cluster node does not serve the job's slot. The job was not executed.
    Redirected(Redirect),
    /// The server rejected the call with this error code. It is unknown whether a job was executed.
    Refused(String),
}

impl fmt::Display for BatcherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded => {
                f.write_str("too many calls wait for Redis: use a faster server or more shards")
            }
            Self::Unavailable => f.write_str("Redis cannot be reached, or cannot execute commands"),
            Self::TimedOut => f.write_str("Redis did not answer by the deadline"),
            Self::Lost => f.write_str("the connection to Redis broke before it answered"),
            Self::Step(error) => error.fmt(f),
            Self::Redirected(redirect) => redirect.fmt(f),
            Self::Refused(code) => write!(
                f,
                "Redis returned the error {code} to the step; check the user's permissions and \
                 the server's log"
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
