//! The answers of a server to the jobs of a batcher.

use tollgate_core::{Cell, Readings};

use crate::error::StepError;

/// The answer of a server to a job.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The readings of a job that consists of charges.
    Readings(Readings),
    /// The cells that a job read, in the order of the job's operations. An element is `None` if the
    /// server has no cell for that operation that is valid at the time of the job.
    CellTransfer(Vec<Option<Cell>>),
    /// The job joined its cells with the stored cells.
    Joined,
}

impl Answer {
    /// Returns the readings of a job with charges.
    ///
    /// # Errors
    /// [`StepError::Corrupt`] if the answer contains no readings.
    pub(crate) fn into_readings(self) -> Result<Readings, StepError> {
        match self {
            Self::Readings(readings) => Ok(readings),
            Self::CellTransfer(_) | Self::Joined => Err(StepError::Corrupt),
        }
    }

    /// Returns the cells of a job that reads cells.
    ///
    /// # Errors
    /// [`StepError::Corrupt`] if the answer contains no cells.
    pub(crate) fn into_cells(self) -> Result<Vec<Option<Cell>>, StepError> {
        match self {
            Self::CellTransfer(cells) => Ok(cells),
            Self::Readings(_) | Self::Joined => Err(StepError::Corrupt),
        }
    }
}
