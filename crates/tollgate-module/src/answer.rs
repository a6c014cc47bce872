//! The reply to a command, in the same format as the reply of the Lua script in `tollgate-redis`. A
//! reply begins with the byte 1 if the command's deadline had passed, otherwise with 0. The
//! server's clock in ms follows, or 0 if the command did not request the clock. The answers to the
//! jobs of the command come last.

use tollgate_core::{Admission, Reading, StoredState, Timestamp};

const NUMBER_BYTES: usize = 7;
const DECIDED: u8 = 0;
const LATE: u8 = 1;
const FULL: u8 = 1;
/// The bit, in the first byte of an encoded reading, that is set if the reading has reserved units
/// or added units. These two numbers then follow the other numbers of the reading.
const MORE: u8 = 64;

/// A reply that is written to a borrowed buffer. The reply to the next command reuses the memory of
/// the buffer.
#[derive(Debug)]
pub(crate) struct Reply<'b> {
    bytes: &'b mut Vec<u8>,
}

impl<'b> Reply<'b> {
    /// The encoded size in bytes of a reading without reserved and added units.
    const READING_BYTES: usize = 36;

    /// Begins the reply to a command in the empty buffer `bytes`: writes everything before the
    /// answers to the jobs. `jobs` is the approximate number of answers, for which memory is
    /// reserved. `clock` is the time of the server's clock if the command requested it, otherwise
    /// `None`.
    pub(crate) fn new(bytes: &'b mut Vec<u8>, jobs: usize, clock: Option<Timestamp>) -> Self {
        bytes.reserve(8 + jobs * (1 + Self::READING_BYTES));
        bytes.push(DECIDED);
        let mut reply = Self { bytes };
        reply.number(clock.map_or(0, Timestamp::as_millis));
        reply
    }

    /// Writes the reply to a command that is not executed, because its deadline had passed at
    /// `clock`.
    pub(crate) fn late(bytes: &'b mut Vec<u8>, clock: Timestamp) {
        Self::new(bytes, 0, Some(clock)).bytes[0] = LATE;
    }

    /// Begins the answer to a job that was executed. The readings or cells of its operations
    /// follow.
    pub(crate) fn decided(&mut self) {
        self.bytes.push(DECIDED);
    }

    /// Writes the answer to a job that is not executed, because it needs a new key or table entry
    /// and none can be created.
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
        let full_reset_at = reading.full_reset_at.as_millis();
        let numbers = [at, reading.used, full_reset_at, reading.position.0, reading.refunded];
        let mut bytes = [0; Self::READING_BYTES + 1];
        bytes[0] = flags;
        for (index, number) in numbers.into_iter().enumerate() {
            // A number is written as eight bytes, of which the last is zero. The next number
            // overwrites that byte.
            let begin = 1 + NUMBER_BYTES * index;
            bytes[begin..=begin + NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
        }
        self.bytes.extend_from_slice(&bytes[..Self::READING_BYTES]);
        if more != (0, 0) {
            self.number(more.0);
            self.number(more.1);
        }
    }

    /// Appends the length of an encoded cell and its `bytes`. Empty `bytes` mean that there is no
    /// cell.
    pub(crate) fn cell(&mut self, bytes: &[u8]) {
        // The length fits into 32 bits: a cell is smaller than the largest value of a server.
        self.bytes.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes()[..NUMBER_BYTES]);
    }
}

const fn code(admission: Admission) -> u8 {
    match admission {
        Admission::Now => 0,
        Admission::At(_) => 1,
        Admission::Never => 2,
    }
}
