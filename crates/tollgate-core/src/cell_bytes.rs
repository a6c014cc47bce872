//! The encoding of a [`Cell`], the stored state of one limit for one subject, as bytes. Stores
//! outside of the process use this encoding, and so do transfers between stores. The step in Redis
//! writes the same bytes.
//!
//! The first byte is a letter that identifies the algorithm. Numbers of seven bytes follow, in
//! little-endian order: 56 bits are enough for every exact integer. If the cell has reservations,
//! they come before the algorithm's state: a letter, the number of reservations, and one record for
//! each reservation.

mod reservations;

use alloc::vec::Vec;

use crate::algo::sliding_window::SeriesSum;
use crate::algo::{
    StepTime, concurrency, fixed_window, sliding_log, sliding_window, token_bucket, two_bucket,
};
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::decide::{Cell, Plain};
use crate::limit::{Algorithm, Limit};
use crate::reading::Reading;
use crate::time::{MAX_EXACT, Timestamp};

/// The largest number of records in an encoded cell. Longer encodings are not decoded. No limit
/// needs more records.
const MAX_RECORDS: usize = 10_000;

const NUMBER_BYTES: usize = 7;
const PAIR_BYTES: usize = 2 * NUMBER_BYTES;
const ID_BYTES: usize = 16;
/// The length in bytes of the encoding of a state that consists of two numbers: a letter for the
/// algorithm, and the numbers.
const PLAIN_BYTES: usize = 1 + PAIR_BYTES;

impl Cell {
    /// Encodes the cell as bytes. [`Cell::from_bytes`] decodes them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + 3 * NUMBER_BYTES);
        self.append_to(&mut bytes);
        bytes
    }

    /// Appends the bytes of [`Cell::to_bytes`] to a buffer that the caller reuses.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::FixedWindow(state) => {
                bytes.extend_from_slice(&Plain::FixedWindow(*state).to_bytes());
            }
            Self::TwoBucket(state) => {
                push(bytes, b'e', [state.bucket, state.previous, state.current]);
            }
            Self::TokenBucket(state) => {
                bytes.extend_from_slice(&Plain::TokenBucket(*state).to_bytes());
            }
            Self::SlidingWindow(state) => {
                bytes.push(b'w');
                extend_pairs(bytes, state.blocks.iter().map(|block| [block.number, block.used]));
            }
            Self::SlidingLog(state) => {
                bytes.push(b'l');
                let entries = state.entries.iter();
                extend_pairs(bytes, entries.map(|entry| [entry.at.as_millis(), entry.used]));
            }
            Self::Concurrency(state) => {
                bytes.push(b'c');
                for lease in &state.permits {
                    bytes.extend_from_slice(&lease.id.0.to_be_bytes());
                    extend(bytes, [lease.used, lease.expires_at.as_millis()]);
                }
            }
            Self::Reserved(reserved) => reservations::push(bytes, reserved),
        }
    }

    /// Decodes a cell. Returns `None` if `bytes` are not the encoding of a cell, if they encode an
    /// empty cell, or if their numbers are out of order or out of range.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if let Some(plain) = bytes.try_into().ok().and_then(Plain::from_bytes) {
            return Some(plain.into());
        }
        let (kind, records) = bytes.split_first()?;
        match kind {
            b'e' => {
                let [bucket, previous, current] = only(records)?;
                Some(Self::TwoBucket(two_bucket::State { bucket, previous, current }))
            }
            b'w' => {
                let blocks =
                    series(records, |number, used| sliding_window::Block { number, used })?;
                Some(Self::SlidingWindow(sliding_window::State { blocks }))
            }
            b'l' => {
                let entry = |at, used| sliding_log::Entry { at: Timestamp::from_millis(at), used };
                let entries = series(records, entry)?;
                Some(Self::SlidingLog(sliding_log::State { entries }))
            }
            b'c' => permits(records),
            b'h' => reservations::read(records),
            _ => None,
        }
    }
}

impl Plain {
    /// Encodes the state, as [`Cell::to_bytes`] encodes a cell with this state.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; PLAIN_BYTES] {
        let (kind, first, second) = match self {
            Self::FixedWindow(state) => (b'f', state.resets_at.as_millis(), state.used),
            Self::TokenBucket(state) => (b't', state.level, state.at.as_millis()),
        };
        let mut bytes = [0; PLAIN_BYTES];
        // The state is written by two overlapping writes of eight bytes.
        bytes[..8].copy_from_slice(&(first << 8 | u64::from(kind)).to_le_bytes());
        bytes[8..].copy_from_slice(&second.to_le_bytes()[..NUMBER_BYTES]);
        bytes
    }

    /// Decodes a state of two numbers. Returns `None` if `bytes` are a state of another algorithm,
    /// or contain numbers out of range.
    #[inline]
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PLAIN_BYTES]) -> Option<Self> {
        let wide = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk));
        let (first, second) = (wide(bytes.first_chunk()) >> 8, wide(bytes.last_chunk()) >> 8);
        if (first | second) > MAX_EXACT {
            return None;
        }
        match bytes[0] {
            b'f' => {
                let resets_at = Timestamp::from_millis(first);
                Some(Self::FixedWindow(fixed_window::State { used: second, resets_at }))
            }
            b't' => {
                let at = Timestamp::from_millis(second);
                Some(Self::TokenBucket(token_bucket::State { level: first, at }))
            }
            _ => None,
        }
    }
}

fn push(bytes: &mut Vec<u8>, kind: u8, numbers: impl IntoIterator<Item = u64>) {
    bytes.push(kind);
    extend(bytes, numbers);
}

fn extend(bytes: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes()[..NUMBER_BYTES]);
    }
}

/// Appends a record of two encoded numbers to `bytes` for each element of `pairs`. There can be
/// many records, so the memory for all of them is reserved at once.
fn extend_pairs(bytes: &mut Vec<u8>, pairs: impl ExactSizeIterator<Item = [u64; 2]>) {
    let begin = bytes.len();
    bytes.resize(begin + pairs.len() * PAIR_BYTES, 0);
    let (records, _) = bytes.get_mut(begin..).unwrap_or_default().as_chunks_mut::<PAIR_BYTES>();
    for (record, [first, second]) in records.iter_mut().zip(pairs) {
        // Each record is written by two overlapping writes of eight bytes.
        let tail = second << 8 | first << 8 >> 56;
        record[..8].copy_from_slice(&first.to_le_bytes());
        record[PAIR_BYTES - 8..].copy_from_slice(&tail.to_le_bytes());
    }
}

/// Decodes `bytes`, which must be a single record of `N` numbers. Returns `None` if `bytes` have
/// another length, or if a number is above 2^53 − 1.
fn only<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    if bytes.len() != N * NUMBER_BYTES {
        return None;
    }
    numbers(bytes)
}

fn numbers<const N: usize>(record: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(record.chunks_exact(NUMBER_BYTES)) {
        let mut wide = [0; 8];
        wide[..NUMBER_BYTES].copy_from_slice(bytes);
        *number = Some(u64::from_le_bytes(wide)).filter(|number| *number <= MAX_EXACT)?;
    }
    Some(numbers)
}

/// Decodes the blocks of a sliding window or the entries of a sliding log. Each record contains the
/// number of the block or the time of the entry, followed by the units, and `make` converts the two
/// numbers to a value. Returns `None` if the records are not in ascending order, or if a record
/// except the newest has zero units.
fn series<T>(bytes: &[u8], make: impl Fn(u64, u64) -> T) -> Option<Vec<T>> {
    SeriesSum::of(bytes)?;
    let (records, _) = bytes.as_chunks::<PAIR_BYTES>();
    let make = |record: &[u8; PAIR_BYTES]| {
        let [position, units] = pair(record);
        make(position, units)
    };
    Some(records.iter().map(make).collect())
}

/// Decodes the two numbers of a record. The function reads eight bytes for each number and drops
/// the byte that belongs to the other number, because reading eight bytes is faster than reading
/// seven.
#[inline(always)]
fn pair(record: &[u8; PAIR_BYTES]) -> [u64; 2] {
    let wide = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk));
    [wide(record.first_chunk()) << 8 >> 8, wide(record.last_chunk()) >> 8]
}

impl SeriesSum {
    /// Returns the sum of the blocks that `bytes` encode, or `None` if `bytes` are not a valid
    /// series of blocks.
    fn of(bytes: &[u8]) -> Option<Self> {
        let (records, rest) = bytes.as_chunks::<PAIR_BYTES>();
        if !rest.is_empty() || records.len() > MAX_RECORDS {
            return None;
        }
        let ([oldest, _], [newest, _]) = (pair(records.first()?), pair(records.last()?));
        let (mut is_valid, mut least, mut used, mut sum) = (true, 0, 1, 0_u64);
        for record in records {
            let [position, units] = pair(record);
            is_valid &= (position >= least) & (used > 0) & ((position | units) <= MAX_EXACT);
            (least, used) = (position + 1, units);
            sum = sum.saturating_add(units);
        }
        is_valid.then_some(Self { oldest, newest, units: sum })
    }
}

/// Executes the only charge of a call on `bytes`, the encoded state of a sliding window, and
/// returns the reading. The reading and the new bytes equal those of
/// [`decide`](crate::decide::decide), but the bytes are not decoded into a cell.
///
/// Returns `None`, and changes nothing, if `bytes` are not the state of a sliding window, if the
/// charge or a second equal charge does not fit, if a block has expired, or if a new block has to
/// begin.
#[must_use]
pub fn charge_bytes(
    bytes: &mut [u8],
    limit: &Limit,
    cost: Cost,
    now: Timestamp,
) -> Option<Reading> {
    let Algorithm::SlidingWindow(step) = limit.algorithm() else { return None };
    let (b'w', records) = bytes.split_first_mut()? else { return None };
    let at = StepTime { now, skew_max: limit.skew_tolerance() };
    let reading = step.charge_newest(SeriesSum::of(records)?, cost, at)?;
    let (_, newest) = records.split_last_chunk_mut::<NUMBER_BYTES>()?;
    let [units] = numbers(newest)?;
    newest.copy_from_slice(&(units + cost.get()).to_le_bytes()[..NUMBER_BYTES]);
    Some(reading)
}

/// Decodes the state of a concurrency limit, in which every record is a permit. Returns `None` if a
/// permit has no units, or if the permits are not sorted by expiry.
fn permits(bytes: &[u8]) -> Option<Cell> {
    let lease = |record: &[u8]| {
        let (id, rest) = record.split_first_chunk::<ID_BYTES>()?;
        let [used, expires_at] = only(rest)?;
        let id = ChargeId(u128::from_be_bytes(*id));
        let expires_at = Timestamp::from_millis(expires_at);
        (used > 0).then_some(concurrency::Permit { id, used, expires_at })
    };
    let permits: Vec<_> =
        records(bytes, ID_BYTES + 2 * NUMBER_BYTES)?.map(lease).collect::<Option<_>>()?;
    let in_order = permits.is_sorted_by_key(|lease| lease.expires_at);
    in_order.then_some(Cell::Concurrency(concurrency::State { permits }))
}

/// Divides `bytes` into records of `size` bytes each. Returns `None` if a part of a record is left
/// over, or if there are no records or more than [`MAX_RECORDS`].
fn records(bytes: &[u8], size: usize) -> Option<impl ExactSizeIterator<Item = &[u8]>> {
    let count = bytes.len() / size;
    let is_complete = bytes.len() == count * size && (1..=MAX_RECORDS).contains(&count);
    is_complete.then(|| bytes.chunks_exact(size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn cells() -> Vec<Cell> {
        let at = Timestamp::from_millis;
        let block = |number, used| sliding_window::Block { number, used };
        let entry = |millis, used| sliding_log::Entry { at: at(millis), used };
        let lease =
            |id, used, ends| concurrency::Permit { id: ChargeId(id), used, expires_at: at(ends) };
        vec![
            Cell::FixedWindow(fixed_window::State { used: MAX_EXACT, resets_at: at(MAX_EXACT) }),
            Cell::TwoBucket(two_bucket::State { bucket: 1, previous: 2, current: 3 }),
            Cell::TokenBucket(token_bucket::State { level: 0, at: at(9) }),
            Cell::SlidingWindow(sliding_window::State { blocks: vec![block(1, 4), block(5, 0)] }),
            Cell::SlidingLog(sliding_log::State { entries: vec![entry(7, 1), entry(8, 2)] }),
            Cell::SlidingLog(sliding_log::State { entries: vec![entry(MAX_EXACT, MAX_EXACT)] }),
            Cell::Concurrency(concurrency::State {
                permits: vec![lease(u128::MAX, 1, 5), lease(2, 7, 5)],
            }),
        ]
    }

    #[test]
    fn a_cell_is_read_as_it_was_written() {
        for cell in cells() {
            assert_eq!(Cell::from_bytes(&cell.to_bytes()), Some(cell));
        }
    }

    #[test]
    fn what_is_cut_lengthened_or_altered_is_read_without_a_panic_and_cut_is_none() {
        for cell in cells() {
            let bytes = cell.to_bytes();
            for length in 0..bytes.len() {
                let is_shorter = length > 1 && Cell::from_bytes(&bytes[..length]).is_some();
                let has_records = matches!(
                    cell,
                    Cell::SlidingWindow(_) | Cell::SlidingLog(_) | Cell::Concurrency(_)
                );
                assert!(!is_shorter || has_records, "{cell:?} cut at {length}");
            }
            assert_eq!(Cell::from_bytes(&[&bytes[..], b"\0"].concat()), None);
            for position in 0..bytes.len() {
                let mut altered = bytes.clone();
                altered[position] = !altered[position];
                let _ = Cell::from_bytes(&altered);
            }
        }
    }

    #[test]
    fn numbers_out_of_range_or_order_are_no_cell() {
        let form = |kind, numbers: &[u64]| {
            let mut bytes = Vec::new();
            push(&mut bytes, kind, numbers.iter().copied());
            Cell::from_bytes(&bytes)
        };
        let large = MAX_EXACT + 1;
        for numbers in [[large, 0], [0, large], [large, large]] {
            assert_eq!(form(b'f', &numbers), None);
        }
        for numbers in [[large, 1], [1, large], [large, large]] {
            assert_eq!(form(b'w', &numbers), None);
        }
        assert_eq!(form(b'w', &[2, 1, 2, 1]), None, "a place twice");
        assert_eq!(form(b'l', &[3, 1, 2, 1]), None, "places that fall");
        assert_eq!(form(b'w', &[2, 0, 3, 1]), None, "an empty block that is not the newest");
        assert_eq!(form(b'w', &[]), None, "nothing");
        assert_eq!(form(b'?', &[1, 1]), None, "no kind");
        assert!(form(b'w', &[2, 1, 3, 0]).is_some());
        let permit =
            concurrency::Permit { id: ChargeId(1), used: 0, expires_at: Timestamp::from_millis(5) };
        let empty = Cell::Concurrency(concurrency::State { permits: vec![permit] });
        assert_eq!(Cell::from_bytes(&empty.to_bytes()), None, "a permit without units");
    }

    #[test]
    fn a_series_has_at_most_the_largest_number_of_records() {
        let series = |count: u64| {
            let numbers = (1..=count).flat_map(|number| [number, 1]);
            let mut bytes = Vec::new();
            push(&mut bytes, b'l', numbers);
            Cell::from_bytes(&bytes)
        };
        let most = MAX_RECORDS as u64;
        assert!(series(most).is_some());
        assert_eq!((series(most + 1), series(most + 2)), (None, None));
    }

    /// A merged state can have a block that expired when the newest block began.
    #[test]
    fn an_expired_block_is_not_counted_on_bytes() {
        let window =
            crate::algo::SlidingWindow::new(50, crate::Millis::new(100), crate::Millis::new(10));
        let limit = Limit::new("limit", Algorithm::SlidingWindow(window.unwrap())).unwrap();
        let charged = |oldest| {
            let blocks = [(oldest, 3), (110, 4)];
            let blocks = blocks.map(|(number, used)| sliding_window::Block { number, used });
            let state = sliding_window::State { blocks: blocks.to_vec() };
            let mut bytes = Cell::SlidingWindow(state).to_bytes();
            let reading =
                charge_bytes(&mut bytes, &limit, Cost::ONE, Timestamp::from_millis(1_100));
            reading.map(|reading| reading.used)
        };
        assert_eq!((charged(101), charged(100)), (Some(8), None));
    }

    /// Compares [`charge_bytes`] with [`decide`](crate::decide::decide) on windows that expire,
    /// that have no room, that are from the future, or that are full.
    #[test]
    fn a_charge_on_bytes_is_the_decision_or_nothing() {
        let mut charged = 0;
        for (quota, precision, skew_max) in [(50, 10, 0), (40, 100, 30), (1_000, 7, 1_000)] {
            let window = crate::Millis::new(100);
            let step =
                crate::algo::SlidingWindow::new(quota, window, crate::Millis::new(precision));
            let limit = Limit::new("limit", Algorithm::SlidingWindow(step.unwrap())).unwrap();
            let limit = limit.with_skew_max(crate::Millis::new(skew_max));
            let (mut cell, mut random) = (None, 7_u64);
            for turn in 0..3_000_u64 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(turn);
                let now = Timestamp::from_millis(1_000 + turn * 3 + (random >> 40) % 40);
                let cost = Cost::new((random >> 50) % 4).unwrap();
                let operation = crate::Operation::Charge { cost, id: ChargeId(1) };
                let mut bytes = cell.as_ref().map_or_else(Vec::new, Cell::to_bytes);
                let before = bytes.clone();
                let on_bytes = charge_bytes(&mut bytes, &limit, cost, now);
                let (reading, next) = crate::decide::decide(cell, &limit, operation, now);
                if on_bytes.is_some() {
                    assert_eq!(on_bytes, Some(reading), "turn {turn}");
                    assert_eq!(Some(bytes), next.as_ref().map(Cell::to_bytes), "turn {turn}");
                    charged += 1;
                } else {
                    assert_eq!(bytes, before);
                }
                cell = next;
            }
        }
        assert!(charged > 1_000, "only {charged} charges");
    }
}
