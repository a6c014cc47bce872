//! Operations on the permits of a concurrency limit: the first permit of a subject, the renewal and
//! the release of a permit. Permits take the place of reservations.

use alloc::vec::Vec;

use super::{Cell, assess};
use crate::algo::StepTime;
use crate::algo::concurrency::Permit;
use crate::charge::{Deduplication, Operation};
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::limit::{Algorithm, Limit};
use crate::reading::{Admission, Reading};
use crate::time::Timestamp;

/// Returns whether `limit` has permits, which is the case for concurrency limits.
pub(super) const fn has_permits(limit: &Limit) -> bool {
    matches!(limit.algorithm(), Algorithm::Concurrency(_))
}

/// Charges `cost` on the concurrency limit `limit` for a subject without state, as
/// [`decide`](super::decide) does. `permits` is an empty list, whose memory the new state uses.
///
/// This is the usual case: most requests on a concurrency limit find no other request of their
/// subject in flight.
///
/// Returns `None` if `limit` has another algorithm, or if `cost` does not fit or is a peek.
#[must_use]
pub fn first_permit(
    permits: Vec<Permit>,
    limit: &Limit,
    (cost, id): (Cost, ChargeId),
    now: Timestamp,
) -> Option<(Reading, Cell)> {
    let Algorithm::Concurrency(step) = limit.algorithm() else { return None };
    if cost == Cost::PEEK || cost.needed() > step.quota() {
        return None;
    }
    let (reading, state) = step.first_permit(permits, (cost, id), now);
    Some((reading, Cell::Concurrency(state)))
}

/// Extends the permit of the charge `id`, if the permit still exists. Returns the reading and the
/// next cell. The reading's admission is `Now` if the permit still existed.
pub(super) fn renew(
    mut cell: Option<Cell>,
    limit: &Limit,
    id: ChargeId,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let at = StepTime { now, skew_max: limit.skew_tolerance() };
    let renewed = match (limit.algorithm(), &mut cell) {
        (Algorithm::Concurrency(step), Some(Cell::Concurrency(state))) => {
            step.renew(state, id, at).is_some()
        }
        _ => false,
    };
    let reading = assess(cell.as_ref(), limit, Cost::PEEK, now);
    // A request has to obtain a new permit after its permit has expired.
    let admission = if renewed { Admission::Now } else { Admission::Never };
    (Reading { admission, ..reading }, cell)
}

/// Releases a permit completely, even if the operation `settlement` names a smaller cost. Returns
/// the reading and the next cell. The reading's admission is `Now` if the permit still existed.
pub(super) fn release(
    cell: Option<Cell>,
    limit: &Limit,
    settlement: Operation,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let Operation::Settle { id, position, cost } = settlement else {
        return (Reading::default(), cell);
    };
    let refund = Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded };
    let (reading, cell) = super::refund(cell, limit, refund, now);
    let admission = if reading.refunded > 0 { Admission::Now } else { Admission::Never };
    (Reading { admission, ..reading }, cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algo::Concurrency;
    use crate::decide::decide;
    use crate::time::Millis;

    #[test]
    fn the_first_permit_is_that_of_the_step() {
        for (quota, cost) in [(1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (5, 5), (1, 2), (3, 0)] {
            let step = Concurrency::new(quota, Millis::from_secs(60)).unwrap();
            let limit = Limit::new("concurrent", Algorithm::Concurrency(step)).unwrap();
            let (cost, id) = (Cost::new(cost).unwrap(), ChargeId(7));
            let now = Timestamp::from_millis(1_700_000_000_000);
            let first = first_permit(Vec::with_capacity(4), &limit, (cost, id), now);
            let fits = (1..=quota).contains(&cost.get());
            let (reading, cell) = decide(None, &limit, Operation::Charge { cost, id }, now);
            assert_eq!(first, cell.filter(|_| fits).map(|cell| (reading, cell)));
        }
    }
}
