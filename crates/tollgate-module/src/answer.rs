//! The reply of a command, in the form of the Lua step: 1 if the deadline had passed, otherwise 0;
//! the server's clock in ms (0: not requested); the answers to the jobs.

use tollgate_core::{Admission, Reading, StoredState, Timestamp};

const DECIDED: u8 = 0;
const LATE: u8 = 1;
const FULL: u8 = 1;
/// The flag of a reading that is followed by its reserved and added units.
const MORE: u8 = 64;

/// A reply.
#[derive(Debug)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
}

impl Reply {
    /// The size of a reading that has no reservations.
    const READING_BYTES: usize = 36;

    /// Creates the reply to a command of about so many jobs, with the server's `clock` if it was
    /// requested.
    pub(crate) fn new(jobs: usize, clock: Option<Timestamp>) -> Self {
        let bytes = Vec::with_capacity(8 + jobs * (1 + Self::READING_BYTES));
        let mut reply = Self { bytes };
        reply.bytes.push(DECIDED);
        reply.number(clock.map_or(0, Timestamp::as_millis));
        reply
    }

    /// Returns the reply to a command whose deadline had passed at `clock`.
    pub(crate) fn late(clock: Timestamp) -> Vec<u8> {
        let mut reply = Self::new(0, Some(clock));
        reply.bytes[0] = LATE;
        reply.bytes
    }

    /// Begins the answer to a job.
    pub(crate) fn decided(&mut self) {
        self.bytes.push(DECIDED);
    }

    /// Answers a job that needs a new entry but may not create one.
    pub(crate) fn full(&mut self) {
        self.bytes.push(FULL);
    }

    pub(crate) fn reading(&mut self, reading: &Reading) {
        let (fits, again) = (code(reading.admission), code(reading.fits_again));
        let found = match reading.found {
            StoredState::Missing => 0,
            StoredState::Present => 1,
            StoredState::Discarded => 2,
        };
        let at = match (reading.admission, reading.fits_again) {
            (Admission::At(at), _) | (_, Admission::At(at)) => at.as_millis(),
            _ => 0,
        };
        let more = (reading.reserved, reading.added);
        let flags = fits + again * 4 + found * 16 + if more == (0, 0) { 0 } else { MORE };
        self.bytes.push(flags);
        let full_reset_at = reading.full_reset_at.as_millis();
        for number in [at, reading.used, full_reset_at, reading.position.0, reading.refunded] {
            self.number(number);
        }
        if more != (0, 0) {
            self.number(more.0);
            self.number(more.1);
        }
    }

    /// Appends a cell; without bytes, none.
    pub(crate) fn cell(&mut self, bytes: &[u8]) {
        // A cell is smaller than the largest value of a server.
        self.bytes.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes()[..7]);
    }
}

const fn code(admission: Admission) -> u8 {
    match admission {
        Admission::Now => 0,
        Admission::At(_) => 1,
        Admission::Never => 2,
    }
}
