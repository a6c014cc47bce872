//! Converts the key `reservation` of a limit to the terms of reservations.

use tollgate_core::{Limit, LimitError, ReservationTerms};

use crate::decode::Field;
use crate::raw::{self, Reservation};
use crate::report::Report;
use crate::span::Span;

/// Returns `limit` with the reservation settings of the file, or `None` after reporting a mistake.
pub(super) fn reserved(limit: Limit, raw: &raw::Limit, report: &mut Report<'_>) -> Option<Limit> {
    let hold = match &raw.reservation {
        Field::Absent => return Some(limit),
        Field::Invalid => return None,
        Field::Value(hold) => hold,
    };
    let terms = terms(&hold.value)?;
    let message = |error| report.plain_error(span(&error, &hold.value).unwrap_or(hold.key), error);
    limit.with_reservation_terms(terms).map_err(message).ok()
}

fn terms(raw: &Reservation) -> Option<ReservationTerms> {
    let default = ReservationTerms::default();
    Some(ReservationTerms {
        max: raw.max_duration.or_default(|max| max.0, default.max)?,
        at_most: raw.max_units.or_default(|at_most| at_most.0, default.at_most)?,
        on_expiry: raw.on_expiry.or_default(|on_expiry| on_expiry.0, default.on_expiry)?,
        overdraft: raw.overdraft.or_default(|overdraft| overdraft.0, default.overdraft)?,
    })
}

/// Returns the position of the number in the file that caused `error`. Returns `None` if no number
/// in the file did.
fn span(error: &LimitError, raw: &Reservation) -> Option<Span> {
    fn at<T>(field: &Field<T>) -> Option<Span> {
        field.given().map(|given| given.at)
    }
    match error {
        LimitError::Zero(what) | LimitError::TooLarge { what, .. } => match *what {
            "longest reservation" => at(&raw.max_duration),
            "number of reserved units" => at(&raw.max_units),
            "overdraft" => at(&raw.overdraft),
            _ => None,
        },
        LimitError::NoOverdraft => at(&raw.overdraft),
        _ => None,
    }
}
