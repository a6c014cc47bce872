//! `CL.THROTTLE key max_burst count period [quantity]`, with the reply of redis-cell. The reply
//! contains whether the charge was refused, the limit, the remaining tokens, the seconds until a
//! retry (-1 if the charge was admitted), and the seconds until the bucket is full.
//!
//! The value of the key contains the numbers of the command and the state of the token bucket. A
//! value with other numbers, and a value that redis-cell wrote, is ignored: the command then begins
//! with a full bucket.

use tollgate_core::algo::TokenBucket;
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, Cost, Limit, MAX_EXACT, Millis, Operation, Timestamp,
    decide,
};

const USAGE: &str = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> \
                     <count per period> <period> [<quantity>]";

/// The first byte of every value that this command stores.
const TAG: u8 = b'b';
const NUMBER_BYTES: usize = 7;
const HEAD_BYTES: usize = 1 + 3 * NUMBER_BYTES;

/// A parsed command.
#[derive(Debug)]
pub(crate) struct Throttle {
    capacity: i64,
    cost: Cost,
    /// The limit of the token bucket, and the prefix of the key's value that contains the numbers
    /// of the limit. `None` if the capacity is zero or less.
    bucket: Option<(Limit, Vec<u8>)>,
}

/// The result of a command: the numbers of its reply, and, if the state changed, the new value of
/// the key with its time to live.
#[derive(Debug)]
pub(crate) struct Throttled {
    pub(crate) answer: [i64; 5],
    pub(crate) written: Option<(Vec<u8>, Millis)>,
}

impl Throttle {
    /// Parses the arguments after the key.
    ///
    /// # Errors
    /// The text of the error reply.
    pub(crate) fn parse(args: &[&[u8]]) -> Result<Self, String> {
        let ([burst, count, period] | [burst, count, period, _]) = args else {
            return Err(USAGE.to_owned());
        };
        let (capacity, count) = (integer(burst)?.saturating_add(1), integer(count)?);
        let period = integer(period)?;
        let quantity = args.get(3).map_or(Ok(1), |word| integer(word))?;
        let cost = u64::try_from(quantity).ok().and_then(Cost::new);
        let cost = cost.ok_or_else(|| {
            format!("ERR the quantity must be from 0 to {MAX_EXACT}, not {quantity}")
        })?;
        if capacity <= 0 && count > 0 && period > 0 {
            return Ok(Self { capacity, cost, bucket: None });
        }
        let bucket = Some(bucket(capacity, count, period)?);
        Ok(Self { capacity, cost, bucket })
    }

    /// Charges the token bucket at `now` and returns the result. `value` is the stored value of the
    /// key.
    pub(crate) fn charge(&self, value: Option<&[u8]>, now: Timestamp) -> Throttled {
        let Some((limit, head)) = &self.bucket else {
            let is_admitted = self.cost == Cost::PEEK && self.capacity == 0;
            let answer = [i64::from(!is_admitted), self.capacity, 0, -1, 0];
            return Throttled { answer, written: None };
        };
        let stored = value.and_then(|value| value.strip_prefix(&head[..]));
        let cell = stored.and_then(Cell::from_bytes);
        let operation = Operation::Charge { cost: self.cost, id: ChargeId::default() };
        let (reading, next) = decide(cell, limit, operation, now);
        // A quantity of 0 only reads the bucket, and the command reports it as admitted.
        let is_admitted = self.cost == Cost::PEEK || reading.admission == Admission::Now;
        let live = reading.full_reset_at.since(now);
        let retry = match reading.admission {
            Admission::At(at) if !is_admitted => whole(at.since(now).as_secs_ceil()),
            _ => -1,
        };
        let remaining = limit.capacity().saturating_sub(reading.used);
        let answer = [
            i64::from(!is_admitted),
            self.capacity,
            whole(remaining),
            retry,
            whole(live.as_secs_ceil()),
        ];
        let is_written = is_admitted && self.cost != Cost::PEEK;
        let written = next
            .filter(|_| is_written)
            .map(|cell| ([&head[..], &cell.to_bytes()].concat(), Millis::new(live.get().max(1))));
        Throttled { answer, written }
    }
}

/// Returns the limit of the token bucket, and the prefix of the key's value that contains the
/// numbers of the limit.
///
/// # Errors
/// The text of the error reply, if a number is out of range.
fn bucket(capacity: i64, count: i64, period: i64) -> Result<(Limit, Vec<u8>), String> {
    let positive = |what, number| match u64::try_from(number) {
        Ok(number @ 1..=MAX_EXACT) => Ok(number),
        _ => Err(format!("ERR the {what} must be from 1 to {MAX_EXACT}, not {number}")),
    };
    let (count, period) = (positive("count", count)?, positive("period", period)?);
    let burst = positive("burst", capacity)?;
    let window = period.checked_mul(1_000).ok_or("ERR the period is too long")?;
    // The count and the window are divided by their greatest common divisor, which permits the
    // largest burst.
    let divisor = greatest_common_divisor(count, window);
    let (quota, window) = (count / divisor, window / divisor);
    let limit = TokenBucket::new(quota, Millis::new(window), burst)
        .and_then(|bucket| Limit::new("bucket", Algorithm::TokenBucket(bucket)))
        .map_err(|error| format!("ERR {error}"))?;
    let mut head = Vec::with_capacity(HEAD_BYTES);
    head.push(TAG);
    for number in [quota, window, burst] {
        head.extend_from_slice(&number.to_le_bytes()[..NUMBER_BYTES]);
    }
    // The server's clock may be set back. As in redis-cell, a state from the future is still used.
    Ok((limit.with_skew_max(MAX_WINDOW), head))
}

fn integer(word: &[u8]) -> Result<i64, String> {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        let word: String = String::from_utf8_lossy(word).chars().take(64).collect();
        format!("Cell error: Store error: Couldn't parse as integer: {}", word.escape_debug())
    })
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

const fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
    }

    /// Charges a bucket of 16 tokens to which 30 tokens per minute are added, and keeps the
    /// bucket's value in `value`.
    fn charge(value: &mut Option<Vec<u8>>, args: &[&[u8]], seconds: u64) -> [i64; 5] {
        let throttled = Throttle::parse(args).unwrap().charge(value.as_deref(), at(seconds));
        if let Some((next, _)) = throttled.written {
            *value = Some(next);
        }
        throttled.answer
    }

    #[test]
    fn a_burst_is_admitted_and_then_the_rate() {
        let (mut value, args) = (None, [&b"15"[..], b"30", b"60"]);
        for taken in 1..=16 {
            assert_eq!(charge(&mut value, &args, 0), [0, 16, 16 - taken, -1, 2 * taken]);
        }
        assert_eq!(charge(&mut value, &args, 0), [1, 16, 0, 2, 32]);
        assert_eq!(charge(&mut value, &args, 1), [1, 16, 0, 1, 31]);
        assert_eq!(charge(&mut value, &args, 2), [0, 16, 0, -1, 32]);
        let many = [&b"15"[..], b"30", b"60", b"5"];
        assert_eq!(charge(&mut value, &many, 2), [1, 16, 0, 10, 32]);
        assert_eq!(charge(&mut value, &[b"15", b"30", b"60", b"17"], 2), [1, 16, 0, -1, 32]);
        assert_eq!(charge(&mut value, &[b"15", b"30", b"60", b"0"], 2), [0, 16, 0, -1, 32]);
        assert_eq!(charge(&mut value, &many, 40), [0, 16, 11, -1, 10]);
    }

    #[test]
    fn values_of_other_numbers_or_of_redis_cell_are_full_buckets() {
        let args = [&b"0"[..], b"1", b"60"];
        for value in [&b"1700000000000000000"[..], b"", b"b", b"text"] {
            assert_eq!(charge(&mut Some(value.to_vec()), &args, 0)[0], 0);
        }
        let mut value = None;
        assert_eq!(charge(&mut value, &args, 0), [0, 1, 0, -1, 60]);
        assert_eq!(charge(&mut value, &args, 0), [1, 1, 0, 60, 60]);
        assert_eq!(charge(&mut value, &[b"1", b"1", b"60"], 0)[0], 0);
    }

    #[test]
    fn impossible_numbers_are_errors_and_buckets_without_capacity_refuse() {
        for args in [
            &[&b"1"[..], b"0", b"60"][..],
            &[b"1", b"1", b"-60"],
            &[b"1", b"1", b"9223372036854775807"],
            &[b"9223372036854775807", b"1", b"60"],
            &[b"1", b"1", b"60", b"-1"],
            &[b"x", b"1", b"60"],
            &[b"1", b"1"],
            &[b"1", b"1", b"60", b"1", b"1"],
        ] {
            assert!(Throttle::parse(args).is_err(), "{args:?}");
        }
        assert_eq!(charge(&mut None, &[b"-1", b"1", b"60"], 0), [1, 0, 0, -1, 0]);
        assert_eq!(charge(&mut None, &[b"-1", b"1", b"60", b"0"], 0), [0, 0, 0, -1, 0]);
    }
}
