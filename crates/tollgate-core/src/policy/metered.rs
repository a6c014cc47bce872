//! Metered costs: the units to reserve when a request arrives, and how the response determines the
//! actual cost.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::response_terms::ResponseTerms;
use crate::attributes::RequestAttributes;
use crate::cost::Cost;
use crate::json_pointer::JsonPointer;
use crate::time::Millis;

/// A limit of a rule on which the cost is measured when the response is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeteredLimit {
    /// Index into [`Policy::limits`](super::Policy::limits). The rule must use this limit. If a
    /// request does not specify the units to reserve, the rule's cost on this limit is reserved.
    pub limit: usize,
    /// The part of the response that determines the cost.
    pub meter: Arc<Meter>,
    /// The way in which the request determines the units to reserve, or `None` if the request does
    /// not determine them.
    pub reserve: Option<ReservationAmount>,
}

/// The way in which the response determines the cost of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meter {
    /// The cost is the integer in a header field.
    Header {
        /// The field's name in lower case.
        field: Box<str>,
    },
    /// The cost is the integer at a pointer in the JSON body. If the body is a stream of
    /// server-sent events, the last event with an integer at the pointer counts.
    Json {
        /// The pointer to the value in the body.
        pointer: JsonPointer,
    },
    /// The cost is the length of the body divided by `bytes`, rounded up.
    Size {
        /// Bytes per unit.
        bytes: NonZeroU64,
    },
    /// The cost is the time from the arrival of the request to the end of the response body,
    /// divided by `each` and rounded up.
    Time {
        /// The time of one unit, at least 1 ms.
        each: Millis,
    },
}

/// The way in which a request determines the units to reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationAmount {
    /// The part of the request that contains the number of units to reserve.
    pub source: ReservationSource,
    /// The smallest number of units to reserve, even if the request asks for fewer.
    pub at_least: Option<Cost>,
    /// The largest number of units to reserve, even if the request asks for more.
    pub at_most: Option<Cost>,
}

/// The part of a request that contains the number of units to reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationSource {
    /// The integer in a header field.
    Header {
        /// The field's name in lower case.
        field: Box<str>,
    },
    /// The integer at a pointer in the JSON body.
    Json {
        /// The pointer to the value in the body.
        pointer: JsonPointer,
    },
}

/// Units that are reserved until a meter measures the actual cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The part of the response that determines the actual cost.
    pub meter: Arc<Meter>,
    /// The reserved units.
    pub reserved: Cost,
    /// The statuses of the response for which the units stay charged.
    pub terms: ResponseTerms,
}

/// Empty lists of estimates. The next plan uses them again, so that it need not allocate memory.
/// The number of lists is at most the number of metered limits of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Spare(Vec<Vec<Estimate>>);

impl Spare {
    pub(super) fn take(&mut self) -> Vec<Estimate> {
        self.0.pop().unwrap_or_default()
    }

    /// Empties `estimates` and keeps the list for the next plan, if the list has allocated memory.
    pub(super) fn give(&mut self, mut estimates: Vec<Estimate>) {
        if estimates.capacity() > 0 {
            estimates.clear();
            self.0.push(estimates);
        }
    }
}

impl Meter {
    /// Returns the cost of a response body that is `bytes` bytes long. Returns `None` if the meter
    /// does not count bytes.
    #[must_use]
    pub const fn of_size(&self, bytes: u64) -> Option<Cost> {
        match self {
            Self::Size { bytes: each } => Some(Cost::up_to(bytes.div_ceil(each.get()))),
            _ => None,
        }
    }

    /// Returns the cost of a request that took `time`. Returns `None` if the meter does not measure
    /// time.
    #[must_use]
    pub fn of_time(&self, time: Millis) -> Option<Cost> {
        match self {
            Self::Time { each } => Some(Cost::up_to(time.get().div_ceil(each.get().max(1)))),
            _ => None,
        }
    }
}

impl MeteredLimit {
    /// Returns the [estimate](Self::estimate) that is the same for every request: a reservation of
    /// `otherwise` units, but at least 1. Returns `None` if the units to reserve depend on the
    /// request.
    pub(super) fn fixed_estimate(&self, otherwise: Cost) -> Option<Estimate> {
        self.reserve.is_none().then(|| self.estimate_of(otherwise))
    }

    /// Returns the units to reserve for a request. The number is at least 1, because an empty
    /// reservation cannot be settled. If the request does not specify an amount, `otherwise` is
    /// reserved.
    pub(super) fn estimate(&self, attributes: &RequestAttributes<'_>, otherwise: Cost) -> Estimate {
        let amount = self.reserve.as_ref().and_then(|reserve| reserve.amount(attributes));
        self.estimate_of(amount.unwrap_or(otherwise))
    }

    fn estimate_of(&self, reserved: Cost) -> Estimate {
        let terms = ResponseTerms::default();
        Estimate { meter: Arc::clone(&self.meter), reserved: reserved.max(Cost::ONE), terms }
    }
}

impl ReservationAmount {
    fn amount(&self, attributes: &RequestAttributes<'_>) -> Option<Cost> {
        let amount = match &self.source {
            ReservationSource::Header { field } => {
                whole_number(attributes.headers.value(field, 0)?)?
            }
            ReservationSource::Json { pointer } => {
                whole_number(attributes.headers.in_body(pointer)?.as_bytes())?
            }
        };
        let amount = self.at_least.map_or(amount, |at_least| amount.max(at_least));
        Some(self.at_most.map_or(amount, |at_most| amount.min(at_most)))
    }
}

/// Parses a cost in decimal digits, optionally surrounded by white space. A number above the
/// largest cost is parsed as the largest cost. Returns `None` if `text` is not a number.
#[must_use]
pub fn whole_number(text: &[u8]) -> Option<Cost> {
    let digits = text.trim_ascii();
    let add = |sum: u64, digit: &u8| {
        digit.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add((digit - b'0').into()))
    };
    let sum = digits.iter().try_fold(0_u64, add)?;
    (!digits.is_empty()).then(|| Cost::up_to(sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MAX_EXACT;

    #[test]
    fn what_is_begun_counts_whole() {
        let size = Meter::Size { bytes: NonZeroU64::new(1024).unwrap() };
        let costs = [0, 1, 1024, 1025].map(|bytes| size.of_size(bytes).unwrap().get());
        assert_eq!(costs, [0, 1, 1, 2]);
        let time = Meter::Time { each: Millis::new(100) };
        assert_eq!(time.of_time(Millis::new(101)), Cost::new(2));
        assert_eq!((time.of_size(1), size.of_time(Millis::new(1))), (None, None));
    }

    #[test]
    fn whole_numbers_are_digits_and_end_at_the_largest() {
        let read = |text: &str| whole_number(text.as_bytes()).map(Cost::get);
        assert_eq!((read("0"), read(" 42 "), read("007")), (Some(0), Some(42), Some(7)));
        assert_eq!(read("9007199254740993"), Some(MAX_EXACT));
        assert_eq!(read(&"9".repeat(400)), Some(MAX_EXACT));
        for text in ["", " ", "-1", "+1", "1.0", "1e3", "0x1", "1_000", "1 2", "null"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
