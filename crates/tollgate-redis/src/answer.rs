//! What a job is told.

use tollgate_core::{Cell, Readings};

use crate::error::StepError;

/// The answer to a job.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// To one of charges.
    Readings(Readings),
    /// To one that reads cells: those that count, in the order of its places.
    CellTransfer(Vec<Option<Cell>>),
    /// To one that joins cells: that it did.
    Joined,
}

impl Answer {
    /// The answer to a job of charges.
    ///
    /// # Errors
    /// [`StepError::Corrupt`] if it is none.
    pub(crate) fn into_readings(self) -> Result<Readings, StepError> {
        match self {
            Self::Readings(readings) => Ok(readings),
            Self::CellTransfer(_) | Self::Joined => Err(StepError::Corrupt),
        }
    }

    /// The answer to a job that reads cells.
    ///
    /// # Errors
    /// [`StepError::Corrupt`] if it is none.
    pub(crate) fn into_cells(self) -> Result<Vec<Option<Cell>>, StepError> {
        match self {
            Self::CellTransfer(cells) => Ok(cells),
            Self::Readings(_) | Self::Joined => Err(StepError::Corrupt),
        }
    }
}
