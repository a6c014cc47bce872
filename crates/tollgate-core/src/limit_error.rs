//! The errors of creating a limit, and the functions that check its numbers and names.

use alloc::string::String;
use core::fmt;

use crate::time::{MAX_EXACT, MAX_WINDOW, Millis};

/// The maximum length of a limit's name in bytes.
pub const MAX_NAME: usize = 64;

/// The reason why a limit cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// A name is empty, too long or contains bytes other than letters, digits, `_`, `-` and `.`.
    Name(String),
    /// A number that must be at least one is zero. The value is the name of the number.
    Zero(&'static str),
    /// A number is above the largest allowed value.
    TooLarge {
        /// The name of the number that is too large.
        what: &'static str,
        /// The value that was given.
        given: u64,
        /// The largest value that the other numbers of the limit allow.
        largest: u64,
        /// The reason why no larger value is allowed.
        because: &'static str,
    },
    /// The precision of a sliding window is longer than its window.
    PrecisionAboveWindow {
        /// The precision that was given.
        precision: Millis,
        /// The length of the window.
        window: Millis,
    },
    /// A concurrency limit cannot count refusals.
    RefusalsNotInFlight,
    /// A concurrency limit cannot have reservation terms, because its permits take the place of
    /// reservations.
    PermitsAreReservations,
    /// An overdraft is set for a token bucket or a two-bucket estimate. These algorithms cannot be
    /// overdrawn.
    NoOverdraft,
    /// A limit with this algorithm cannot be leased.
    NotLeasable {
        /// The reason why the algorithm cannot be leased.
        because: &'static str,
    },
    /// A leased limit cannot count refusals.
    LeasedCountsRefusals,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "the name {name:?} must be 1 to {MAX_NAME} letters, digits, `_`, `-` or `.`"
            ),
            Self::Zero(what) => write!(f, "the {what} must be at least 1"),
            Self::TooLarge { what, given, largest, because } => {
                write!(f, "the {what} {given} is too large: at most {largest}, {because}")
            }
            Self::PrecisionAboveWindow { precision, window } => {
                write!(f, "the precision {precision} is longer than the window {window}")
            }
            Self::RefusalsNotInFlight => {
                f.write_str("a concurrency limit cannot count refusals: a refused request is never in flight")
            }
            Self::PermitsAreReservations => f.write_str(
                "a concurrency limit does not support `reservation`: its permits are its \
                 reservations, each for one `permit_ttl`",
            ),
            Self::NoOverdraft => f.write_str(
                "a token_bucket and a two_bucket do not support an overdraft",
            ),
            Self::NotLeasable { because } => write!(
                f,
                "only a fixed_window and a sliding_window can be leased: {because}"
            ),
            Self::LeasedCountsRefusals => f.write_str(
                "a leased limit cannot count refusals: nodes decide alone, and only the store counts refusals",
            ),
        }
    }
}

impl core::error::Error for LimitError {}

/// Returns an error unless `name` is a valid name of a limit.
pub(crate) fn check_name(name: &str) -> Result<(), LimitError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
        return Err(LimitError::Name(name.into()));
    }
    Ok(())
}

/// Returns an error unless `given` is in 1 ..= `largest`. In the error, `what` is the name of the
/// number, and `because` is the reason for the bound.
pub(crate) fn check_range(
    what: &'static str,
    given: u64,
    largest: u64,
    because: &'static str,
) -> Result<(), LimitError> {
    if given == 0 {
        return Err(LimitError::Zero(what));
    }
    if given > largest {
        return Err(LimitError::TooLarge { what, given, largest, because });
    }
    Ok(())
}

/// Returns an error unless the quota or burst `given` is at least 1 and every store can represent
/// it exactly. In the error, `what` is the name of the number.
pub(crate) fn check_units(what: &'static str, given: u64) -> Result<(), LimitError> {
    check_range(what, given, MAX_EXACT, "the largest integer that every store holds exactly")
}

/// Returns an error unless the window, precision or `permit_ttl` `given` is in the allowed range.
/// In the error, `what` is the name of the number.
pub(crate) fn check_span(what: &'static str, given: Millis) -> Result<(), LimitError> {
    check_range(what, given.get(), MAX_WINDOW.get(), "ten years in milliseconds")
}
