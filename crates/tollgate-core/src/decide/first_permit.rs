//! The first permit of a subject, which is the usual case: most requests on a concurrency limit
//! find no other request of their subject in flight.

use alloc::vec::Vec;

use super::Cell;
use crate::algo::concurrency::Permit;
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::limit::{Algorithm, Limit};
use crate::reading::Reading;
use crate::time::Timestamp;

/// Charges `cost` on the concurrency limit `limit` for a subject without state, as
/// [`decide`](super::decide) does. `permits` is an empty list, whose memory the new state uses.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algo::Concurrency;
    use crate::charge::Operation;
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
