//! `CL.THROTTLE` of redis-cell, and `THROTTLE` of throttlecrab.

use tollgate::limiter::{Decision, DecisionSource};
use tollgate::model::policy::PlannedCharge;
use tollgate::model::{Cost, KeyedHash, MAX_EXACT, Millis, Subject, Value};

use super::args::Args;
use super::bucket::{BucketCache, BucketParams};
use super::reply::{Replies, echoed};

/// The name of the only dimension of the subjects of these commands. The name contains a space,
/// which the name of a policy's dimension cannot contain, so these counters never collide with the
/// counters of a policy.
const KEY: &str = "resp key";

/// The command of a request, which determines its parameters and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `CL.THROTTLE key max_burst count period [quantity]`, with a burst of `max_burst` + 1. The
    /// reply has the values: limited, limit, remaining, retry after, reset after.
    Cell,
    /// `THROTTLE key max_burst count period [quantity]`, with a burst of `max_burst`. The reply has
    /// the values: allowed, limit, remaining, reset after, retry after.
    Crab,
}

/// A parsed command: the charge that it makes.
#[derive(Debug)]
pub(super) enum Throttle {
    /// A charge of a bucket that has a capacity above 0.
    Charge(PlannedCharge),
    /// A charge of a bucket that has no capacity, which needs no store.
    Nothing {
        /// The capacity of the bucket, at most 0.
        capacity: i64,
        /// The cost of the charge.
        cost: Cost,
    },
}

/// The two values of a charge from which [`Dialect::reply`] computes the reply, in addition to the
/// decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    /// The capacity of the bucket, in tokens.
    pub(super) capacity: u64,
    /// The cost of the charge.
    pub(super) cost: Cost,
}

impl Dialect {
    /// Parses the arguments of the command.
    ///
    /// # Errors
    /// The error reply.
    pub(super) fn read(
        self,
        args: &Args<'_>,
        buckets: &mut BucketCache,
        key: &impl KeyedHash,
    ) -> Result<Throttle, String> {
        let [_, subject, burst, count, period, quantity @ ..] = &args[..] else {
            return Err(self.usage());
        };
        if quantity.len() > 1 {
            return Err(self.usage());
        }
        let burst = self.integer(burst, "max_burst")?;
        let count = self.integer(count, "count_per_period")?;
        let period = self.integer(period, "period")?;
        let quantity = match quantity.first() {
            Some(quantity) => self.integer(quantity, "quantity")?,
            None => 1,
        };
        let cost = match u64::try_from(quantity).ok().and_then(Cost::new) {
            Some(cost) => cost,
            None if quantity < 0 => return Err(format!("ERR negative quantity: {quantity}")),
            None => return Err(format!("ERR the quantity {quantity} is above {MAX_EXACT}")),
        };
        let burst = match self {
            Self::Cell => burst.saturating_add(1),
            Self::Crab => burst,
        };
        if self == Self::Cell && (count == 0 || period == 0) {
            return Err("Cell error: Store error: Zero rates are not supported".to_owned());
        }
        if self == Self::Cell && burst <= 0 && count > 0 && period > 0 {
            return Ok(Throttle::Nothing { capacity: burst, cost });
        }
        let limit =
            buckets.get(BucketParams { burst, count, period }).map_err(|error| match self {
                Self::Crab if burst <= 0 || count <= 0 || period <= 0 => {
                    "ERR invalid rate limit parameters".to_owned()
                }
                _ => format!("ERR {error}"),
            })?;
        let subject = Subject::new([(KEY, Value::Clear(subject))], key);
        Ok(Throttle::Charge(PlannedCharge::new(limit, subject, cost)))
    }

    fn integer(self, word: &[u8], what: &str) -> Result<i64, String> {
        whole(word).ok_or_else(|| match self {
            Self::Cell => {
                format!("Cell error: Store error: Couldn't parse as integer: {}", echoed(word))
            }
            Self::Crab => format!("ERR invalid {what}"),
        })
    }

    fn usage(self) -> String {
        match self {
            Self::Cell => "Cell error: Store error: Usage: cl.throttle <key> <max_burst> \
                           <count per period> <period> [<quantity>]"
                .to_owned(),
            Self::Crab => "ERR wrong number of arguments for 'throttle' command".to_owned(),
        }
    }

    /// Replies with the result of a charge of `bucket.cost` on `bucket`.
    ///
    /// A peek is always admitted, as in redis-cell and throttlecrab, because a peek takes no
    /// tokens. Times are whole seconds, rounded up. If neither the store nor the fallback answered
    /// and `on_failure` admits the charge, the reply contains 0 remaining tokens, because their
    /// number is unknown.
    pub(super) fn reply(self, decision: &Decision, bucket: Bucket, replies: &mut Replies) {
        if let (DecisionSource::Failure(error), false) = (decision.source, decision.is_admitted()) {
            return replies.error(format!("ERR {error}"));
        }
        let now = decision.evaluation.now;
        let limit_status = decision.evaluation.statuses.first();
        let is_peek = bucket.cost == Cost::PEEK;
        let is_admitted = is_peek || decision.is_admitted();
        let retry = decision.evaluation.retry_after().filter(|_| !is_admitted);
        let remaining = limit_status.map_or(0, |limit_status| limit_status.remaining);
        let whole =
            limit_status.map_or(Millis::ZERO, |limit_status| limit_status.full_reset_at.since(now));
        self.write(
            Answer {
                is_admitted,
                capacity: bucket.capacity as i64,
                remaining: remaining as i64,
                retry: retry.map(|retry| retry.as_secs_ceil() as i64),
                reset: whole.as_secs_ceil() as i64,
            },
            replies,
        );
    }

    /// Writes the reply for a bucket without capacity. A peek is admitted if the capacity is 0, and
    /// refused if the capacity is negative.
    pub(super) fn reply_nothing(self, capacity: i64, cost: Cost, replies: &mut Replies) {
        let is_admitted = cost == Cost::PEEK && capacity == 0;
        let answer = Answer { is_admitted, capacity, remaining: 0, retry: None, reset: 0 };
        self.write(answer, replies);
    }

    fn write(self, answer: Answer, replies: &mut Replies) {
        let Answer { is_admitted, capacity, remaining, retry, reset } = answer;
        let never = -1;
        let five = match self {
            Self::Cell => {
                [i64::from(!is_admitted), capacity, remaining, retry.unwrap_or(never), reset]
            }
            Self::Crab if is_admitted => [1, capacity, remaining, reset, 0],
            Self::Crab => [0, capacity, remaining, reset, retry.unwrap_or(never)],
        };
        replies.array(five.len());
        five.into_iter().for_each(|number| replies.integer(number));
    }
}

/// Parses an integer with or without a sign. Returns `None` if `word` is not an `i64`. The result
/// equals the result of `str::parse`, and takes a third of the time.
fn whole(word: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    match digits.len() {
        0 => None,
        1..=ALWAYS_FITS => {
            let (mut number, mut is_number) = (0, true);
            for byte in digits {
                is_number &= byte.is_ascii_digit();
                number = number * 10 + i64::from(byte & 0x0f);
            }
            is_number.then_some(if is_negative { -number } else { number })
        }
        _ => whole_and_long(is_negative, digits),
    }
}

/// The most digits with which every number fits in an `i64`.
const ALWAYS_FITS: usize = 18;

#[cold]
fn whole_and_long(is_negative: bool, digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0_i64, |number, byte| {
            let digit = i64::from(byte.wrapping_sub(b'0'));
            // The digits are subtracted from zero, because the type has one more negative number
            // than positive numbers.
            let number = number.checked_mul(10)?;
            if digit > 9 { None } else { number.checked_sub(digit) }
        })
        .and_then(|number| if is_negative { Some(number) } else { number.checked_neg() })
}

/// The content of the replies of both commands, in no particular order. Times are in whole seconds.
#[derive(Clone, Copy)]
struct Answer {
    is_admitted: bool,
    capacity: i64,
    remaining: i64,
    /// The time until the charge would be admitted. `None` if the charge was admitted, or will
    /// never be admitted.
    retry: Option<i64>,
    reset: i64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(word: &[u8]) -> Option<i64> {
        std::str::from_utf8(word).ok().and_then(|text| text.parse().ok())
    }

    #[test]
    fn the_ends_of_all_numbers_are_numbers() {
        for word in [
            "9223372036854775807",
            "-9223372036854775808",
            "+0",
            "-0",
            "007",
            "",
            "+",
            "-",
            "+-1",
            "9223372036854775808",
            "-9223372036854775809",
            "1_0",
            " 1",
            "1 ",
            "0x10",
            "1e3",
            "NaN",
            "99999999999999999999999",
            "\u{661}",
        ] {
            assert_eq!(whole(word.as_bytes()), parsed(word.as_bytes()), "{word:?}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(
            number in any::<i64>(),
            word in prop::collection::vec(any::<u8>(), 0..22),
            digits in "[+-]?[0-9]{0,21}",
        ) {
            prop_assert_eq!(whole(number.to_string().as_bytes()), Some(number));
            prop_assert_eq!(whole(&word), parsed(&word));
            prop_assert_eq!(whole(digits.as_bytes()), parsed(digits.as_bytes()));
        }
    }
}
