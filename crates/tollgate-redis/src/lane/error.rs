//! Why a job has no answer.

use std::fmt;

use tollgate_core::StoreError;

use crate::cluster::Redirect;
use crate::error::StepError;

/// Why a lane has no answer to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaneError {
    /// The lane is full. The job was not sent.
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

impl fmt::Display for LaneError {
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

impl std::error::Error for LaneError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Step(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LaneError> for StoreError {
    fn from(error: LaneError) -> Self {
        match error {
            LaneError::Overloaded | LaneError::Unavailable | LaneError::Redirected(_) => {
                Self::Unavailable
            }
            LaneError::TimedOut | LaneError::Lost => Self::TimedOut,
            LaneError::Step(error) => error.into(),
            LaneError::Refused(_) => Self::Corrupt,
        }
    }
}
