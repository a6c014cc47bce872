//! Jobs that read cells, or that join cells with the stored cells.

use tollgate_core::{Cell, CellKey, Cost, StoreError, StoredState, assess};

use super::{Job, JobCharge, Op};
use crate::decision_time::JobTime;
use crate::key::Keys;

/// The most cells in one job. The reply contains each of these cells.
const MAX_PLACES: usize = 64;

/// The size in bytes at which a job has enough cells: no further cell is added once its cells
/// exceed this size. The limit is useful because other jobs in the same batch wait for a large job.
const CELL_BYTES: usize = 64 * 1024;

impl Job {
    /// Returns jobs that read the cells at `cell_keys`, in the order of `cell_keys`.
    pub(crate) fn of_cell_keys(
        keys: &Keys,
        time: impl Into<JobTime>,
        cell_keys: &[CellKey<'_>],
    ) -> Vec<Self> {
        let operation = |cell_key: &CellKey<'_>| JobCharge::at(keys, cell_key, Op::Cell);
        let JobTime { now, tolerance } = time.into();
        let job = |cell_keys: &[CellKey<'_>]| Self {
            now,
            tolerance,
            charges: cell_keys.iter().map(operation).collect(),
        };
        cell_keys.chunks(MAX_PLACES).map(job).collect()
    }

    /// Returns jobs that join `cells` with the stored cells. Leaves out cells that are not valid at
    /// the time of the job.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if one of `cells` could not have been written by a store of this
    /// version. The step would reject the cell together with all other jobs in the same command.
    pub(crate) fn joining(
        keys: &Keys,
        time: impl Into<JobTime>,
        cells: &[(CellKey<'_>, Cell)],
    ) -> Result<Vec<Self>, StoreError> {
        let JobTime { now, tolerance } = time.into();
        let mut jobs = Vec::new();
        let (mut charges, mut bytes) = (Vec::new(), 0);
        for (cell_key, cell) in cells {
            if assess(Some(cell), cell_key.limit, Cost::PEEK, now).found != StoredState::Present {
                continue;
            }
            let cell = exact_bytes(cell).ok_or(StoreError::Corrupt)?;
            bytes += cell.len();
            charges.push(JobCharge::at(keys, cell_key, Op::Join { cell }));
            if charges.len() == MAX_PLACES || bytes >= CELL_BYTES {
                jobs.push(Self { now, tolerance, charges: std::mem::take(&mut charges).into() });
                bytes = 0;
            }
        }
        if !charges.is_empty() {
            jobs.push(Self { now, tolerance, charges: charges.into() });
        }
        Ok(jobs)
    }
}

impl JobCharge {
    fn at(keys: &Keys, cell_key: &CellKey<'_>, op: Op) -> Self {
        let key = keys.name(cell_key.limit, cell_key.subject);
        Self::new(cell_key.limit, key, op)
    }
}

/// Returns the encoding of `cell`, or `None` if decoding the encoding does not give the same cell.
fn exact_bytes(cell: &Cell) -> Option<Box<[u8]>> {
    let bytes = cell.to_bytes();
    (Cell::from_bytes(&bytes).as_ref() == Some(cell)).then(|| bytes.into())
}

#[cfg(test)]
mod tests {
    use tollgate_conformance::PlainHash;
    use tollgate_core::algo::{SlidingLog, fixed_window, sliding_log};
    use tollgate_core::{Algorithm, Limit, Millis, Subject, Timestamp, Value};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(20_000);

    fn keys() -> Keys {
        Keys::new(PlainHash)
    }

    fn subject() -> Subject {
        Subject::new([("user", Value::Clear(b"42"))], &PlainHash)
    }

    fn log() -> Limit {
        let log = SlidingLog::new(10_000, Millis::from_secs(60)).unwrap();
        Limit::new("log", Algorithm::SlidingLog(log)).unwrap()
    }

    fn entries(moments: std::ops::Range<u64>) -> Cell {
        let entry = |at| sliding_log::Entry { at: Timestamp::from_millis(at), used: 1 };
        Cell::SlidingLog(sliding_log::State { entries: moments.map(entry).collect() })
    }

    fn sizes(jobs: &[Job]) -> Vec<usize> {
        jobs.iter().map(|job| job.charges.len()).collect()
    }

    #[test]
    fn a_job_holds_so_many_places_and_bytes_and_no_more() {
        let (limit, subject) = (log(), subject());
        let cell_key = CellKey { limit: &limit, subject: &subject };
        assert_eq!(sizes(&Job::of_cell_keys(&keys(), NOW, &[cell_key; 130])), [64, 64, 2]);
        assert_eq!(sizes(&Job::of_cell_keys(&keys(), NOW, &[])), [0; 0]);
        let joining = |cell: Cell, count| {
            sizes(&Job::joining(&keys(), NOW, &vec![(cell_key, cell); count]).unwrap())
        };
        assert_eq!(joining(entries(0..1), 65), [64, 1]);
        // Each of these cells has about 28 kB.
        assert_eq!(joining(entries(0..2_000), 7), [3, 3, 1]);
    }

    #[test]
    fn what_counts_as_none_is_left_out_and_what_no_store_keeps_is_an_error() {
        let (limit, subject) = (log(), subject());
        let cell_key = CellKey { limit: &limit, subject: &subject };
        let joining =
            |cell| Job::joining(&keys(), NOW, &[(cell_key, cell)]).map(|jobs| sizes(&jobs));
        assert_eq!(joining(entries(0..0)), Ok(Vec::new()));
        let of_another_kind = fixed_window::State { used: 1, resets_at: NOW };
        assert_eq!(joining(Cell::FixedWindow(of_another_kind)), Ok(Vec::new()));
        assert_eq!(joining(entries(0..10_001)).unwrap_err(), StoreError::Corrupt);
    }
}
