//! Limits in the encoding that commands contain: thirty bytes for each limit.

use std::cell::RefCell;
use std::rc::Rc;

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, Schedule, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{Algorithm, Limit, LimitError, Millis, Refusals, Timestamp};

use crate::error::CommandError;
use crate::reader::Reader;

/// The encoded size of a limit in bytes. A limit consists of its algorithm, whether refused
/// requests count, and four numbers.
pub(crate) const RULE_BYTES: usize = 30;

/// The largest number of parsed limits that are kept, so that later commands with the same limits
/// need not parse them again.
const KNOWN_RULES: usize = 64;

thread_local! {
    static KNOWN: RefCell<Vec<([u8; RULE_BYTES], Rc<Limit>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the limit that `bytes` encode.
///
/// # Errors
/// [`CommandError::Invalid`] if a number is not valid for a limit.
pub(crate) fn parse(bytes: [u8; RULE_BYTES]) -> Result<Rc<Limit>, CommandError> {
    KNOWN.with_borrow_mut(|known| {
        if let Some((_, limit)) = known.iter().find(|(other, _)| *other == bytes) {
            return Ok(Rc::clone(limit));
        }
        let limit = Rc::new(build(&bytes)?);
        if known.len() >= KNOWN_RULES {
            known.clear();
        }
        known.push((bytes, Rc::clone(&limit)));
        Ok(limit)
    })
}

fn build(bytes: &[u8]) -> Result<Limit, CommandError> {
    let mut reader = Reader::new(bytes);
    let (kind, refusals) = (reader.byte()?, reader.byte()?);
    let (quota, window) = (reader.exact("quota")?, Millis::new(reader.exact("window")?));
    let (extra, skew_max) = (reader.exact("extra")?, Millis::new(reader.exact("skew")?));
    let refusals = if refusals == 1 { Refusals::Counted } else { Refusals::Free };
    let limit = algorithm(kind, quota, window, extra)
        .and_then(|algorithm| Limit::new("limit", algorithm))
        .and_then(|limit| limit.with_refusals(refusals));
    limit.map(|limit| limit.with_skew_max(skew_max)).map_err(|_| CommandError::Invalid("limit"))
}

fn algorithm(kind: u8, quota: u64, window: Millis, extra: u64) -> Result<Algorithm, LimitError> {
    Ok(match kind {
        1 => {
            let anchor = match extra {
                0 => Anchor::FirstRequest,
                1 => Anchor::Calendar,
                end => Anchor::Scheduled(Schedule::ending(Timestamp::from_millis(end), window)),
            };
            Algorithm::FixedWindow(FixedWindow::new(quota, window, anchor)?)
        }
        2 => Algorithm::SlidingWindow(SlidingWindow::new(quota, window, Millis::new(extra))?),
        3 => Algorithm::TwoBucket(TwoBucket::new(quota, window)?),
        4 => Algorithm::SlidingLog(SlidingLog::new(quota, window)?),
        5 => Algorithm::TokenBucket(TokenBucket::new(quota, window, extra)?),
        6 => Algorithm::Concurrency(Concurrency::new(quota, window)?),
        _ => return Err(LimitError::Zero("algorithm")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: u8, numbers: [u64; 4]) -> [u8; RULE_BYTES] {
        let mut bytes = vec![kind, 0];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()[..7]));
        bytes.try_into().unwrap()
    }

    #[test]
    fn every_algorithm_is_parsed_and_numbers_out_of_range_are_an_error() {
        for kind in 1..=6 {
            let limit = parse(bytes(kind, [10, 60_000, 5_000, 1_000])).unwrap();
            assert_eq!((limit.capacity() > 0, limit.skew_tolerance().get()), (true, 1_000));
            assert!(parse(bytes(kind, [0, 60_000, 5_000, 0])).is_err(), "no quota: {kind}");
            assert!(parse(bytes(kind, [10, 0, 1, 0])).is_err(), "no window: {kind}");
            assert!(parse(bytes(kind, [1 << 54, 1, 1, 0])).is_err(), "not exact: {kind}");
        }
        for kind in [0, 7, 255] {
            assert_eq!(parse(bytes(kind, [1; 4])), Err(CommandError::Invalid("limit")));
        }
    }

    #[test]
    fn as_many_limits_are_kept_as_the_bound_says() {
        for quota in 1..=1_000 {
            parse(bytes(1, [quota, 1_000, 0, 0])).unwrap();
            assert!(KNOWN.with_borrow(Vec::len) <= KNOWN_RULES);
        }
    }
}
