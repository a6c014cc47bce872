//! Costs that are known only afterwards: what is reserved when a request arrives, and what of its
//! answer tells the real cost.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::num::NonZeroU64;

use super::pointer::JsonPointer;
use crate::attributes::RequestAttributes;
use crate::cost::Cost;
use crate::time::Millis;

/// A limit of a rule whose cost the answer tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeteredLimit {
    /// Index into [`Policy::limits`](super::Policy::limits). The rule uses it; the cost there is
    /// what is reserved of a request that does not say.
    pub limit: usize,
    /// What tells the cost.
    pub meter: Arc<Meter>,
    /// What of a request says how much to reserve; `None` where nothing does.
    pub reserve: Option<ReservationAmount>,
}

/// What of an answer tells what its request cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meter {
    /// The whole number in a header field.
    Header {
        /// The field's name in lower case.
        field: Box<str>,
    },
    /// The whole number there in its body, which is JSON; in a stream of server-sent events the
    /// last that any event has there.
    Json {
        /// Where it stands.
        pointer: JsonPointer,
    },
    /// The length of its body: a unit for each so many bytes begun.
    Size {
        /// Bytes of one unit.
        bytes: NonZeroU64,
    },
    /// The time from the request's arrival to the end of the answer's body: a unit for each so long
    /// begun.
    Time {
        /// The time of one unit, at least 1 ms.
        each: Millis,
    },
}

/// What of a request says how much it may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationAmount {
    /// Where it says so.
    pub source: ReservationSource,
    /// The most that is reserved, whatever it says.
    pub at_most: Option<Cost>,
}

/// Where a request says how much it may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationSource {
    /// The whole number in a header field.
    Header {
        /// The field's name in lower case.
        field: Box<str>,
    },
    /// The whole number there in its body, which is JSON.
    Json {
        /// Where it stands.
        pointer: JsonPointer,
    },
}

/// Units that are reserved until a meter tells what they really were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// What tells the cost.
    pub meter: Arc<Meter>,
    /// What is reserved until then.
    pub reserved: Cost,
}

impl Meter {
    /// What `bytes` of a body cost, or nothing of a meter that does not count them.
    #[must_use]
    pub const fn of_size(&self, bytes: u64) -> Option<Cost> {
        match self {
            Self::Size { bytes: each } => Some(Cost::up_to(bytes.div_ceil(each.get()))),
            _ => None,
        }
    }

    /// What it costs to have taken `time`, or nothing of a meter that does not measure it.
    #[must_use]
    pub fn of_time(&self, time: Millis) -> Option<Cost> {
        match self {
            Self::Time { each } => Some(Cost::up_to(time.get().div_ceil(each.get().max(1)))),
            _ => None,
        }
    }
}

impl MeteredLimit {
    /// What is reserved of a request, at least one unit: a reservation of nothing could not be
    /// settled. `otherwise` where it does not say.
    pub(super) fn estimate(&self, attributes: &RequestAttributes<'_>, otherwise: Cost) -> Estimate {
        let said = self.reserve.as_ref().and_then(|reserve| reserve.said(attributes));
        let reserved = said.unwrap_or(otherwise).max(Cost::ONE);
        Estimate { meter: Arc::clone(&self.meter), reserved }
    }
}

impl ReservationAmount {
    fn said(&self, attributes: &RequestAttributes<'_>) -> Option<Cost> {
        let said = match &self.source {
            ReservationSource::Header { field } => {
                whole_number(attributes.headers.value(field, 0)?)?
            }
            ReservationSource::Json { pointer } => {
                whole_number(attributes.headers.in_body(pointer)?.as_bytes())?
            }
        };
        Some(self.at_most.map_or(said, |at_most| said.min(at_most)))
    }
}

/// A cost in decimal digits, perhaps with white space around them; what is above the largest cost
/// is the largest.
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
