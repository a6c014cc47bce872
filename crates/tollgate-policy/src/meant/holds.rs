//! How limits may be reserved.

use tollgate_core::{HoldTerms, Limit, LimitError};

use crate::read::Field;
use crate::report::Report;
use crate::span::Span;
use crate::written::{self, Hold};

/// `limit` as it may be reserved; `None` for what is wrong, which is reported.
pub(super) fn reserved(
    limit: Limit,
    written: &written::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    let hold = match &written.hold {
        Field::Absent => return Some(limit),
        Field::Wrong => return None,
        Field::Given(hold) => hold,
    };
    let terms = terms(&hold.value)?;
    let told = |error| report.plain_mistake(place(&error, &hold.value).unwrap_or(hold.key), error);
    limit.with_hold(terms).map_err(told).ok()
}

fn terms(written: &Hold) -> Option<HoldTerms> {
    let default = HoldTerms::default();
    Some(HoldTerms {
        max: written.max.or_default(|max| max.0, default.max)?,
        at_most: written.at_most.or_default(|at_most| at_most.0, default.at_most)?,
        on_expiry: written.on_expiry.or_default(|on_expiry| on_expiry.0, default.on_expiry)?,
        overdraft: written.overdraft.or_default(|overdraft| overdraft.0, default.overdraft)?,
    })
}

/// Where the number stands that an error speaks of.
fn place(error: &LimitError, written: &Hold) -> Option<Span> {
    fn at<T>(field: &Field<T>) -> Option<Span> {
        field.given().map(|given| given.at)
    }
    match error {
        LimitError::Zero(what) | LimitError::TooLarge { what, .. } => match *what {
            "longest hold" => at(&written.max),
            "number of units held at most" => at(&written.at_most),
            "overdraft" => at(&written.overdraft),
            _ => None,
        },
        LimitError::NoDebts => at(&written.overdraft),
        _ => None,
    }
}
