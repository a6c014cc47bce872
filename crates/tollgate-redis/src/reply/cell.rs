//! Decodes a cell in the step's reply. The reply contains the length of the cell, and then its
//! bytes.

use tollgate_core::Cell;

use crate::job::{JobCharge, Op};

/// Decodes the cell at the front of `rest`, which is the answer to `charge`. Returns `None` if no
/// step could have sent such a cell, and `Some(None)` if the server has no cell.
pub(super) fn take_cell(charge: &JobCharge, rest: &mut &[u8]) -> Option<Option<Cell>> {
    let Op::Cell = charge.op else { return None };
    let (size, after) = rest.split_first_chunk()?;
    let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
    let (bytes, after) = after.split_at_checked(size)?;
    *rest = after;
    if bytes.is_empty() {
        return Some(None);
    }
    Cell::from_bytes(bytes).filter(|cell| kind(cell) == charge.rule.kind).map(Some)
}

/// Returns the code of the algorithm that has cells of this type.
fn kind(cell: &Cell) -> u8 {
    match cell {
        Cell::FixedWindow(_) => 1,
        Cell::SlidingWindow(_) => 2,
        Cell::TwoBucket(_) => 3,
        Cell::SlidingLog(_) => 4,
        Cell::TokenBucket(_) => 5,
        Cell::Concurrency(_) => 6,
        Cell::Reserved(reserved) => kind(&reserved.cell),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::algo::fixed_window;
    use tollgate_core::decide::ReservedCell;
    use tollgate_core::{ChargeId, ChargePosition, OnExpiry, Reservation, Timestamp};

    use super::*;
    use crate::job::Rule;

    fn charge(kind: u8, op: Op) -> JobCharge {
        let rule = Rule { kind, counts_refused: 0, quota: 1, window: 1, extra: 0, skew_max: 0 };
        JobCharge { rule, schedule: None, key: Box::default(), op }
    }

    fn taken(charge: &JobCharge, mut reply: &[u8]) -> (Option<Option<Cell>>, usize) {
        (take_cell(charge, &mut reply), reply.len())
    }

    #[test]
    fn a_cell_is_taken_whole_and_what_is_no_cell_of_the_limit_is_none() {
        let state = fixed_window::State { used: 3, resets_at: Timestamp::from_millis(9) };
        let cell = Cell::FixedWindow(state);
        let reply = [&[15, 0, 0, 0][..], &cell.to_bytes(), b"rest"].concat();
        let cells = charge(1, Op::Cell);
        assert_eq!(taken(&cells, &reply), (Some(Some(cell.clone())), 4));
        assert_eq!(taken(&cells, &[0, 0, 0, 0, 7]), (Some(None), 1));
        for length in 0..19 {
            assert_eq!(taken(&cells, &reply[..length]).0, None, "cut at {length}");
        }
        for other in
            [charge(0, Op::Cell), charge(2, Op::Cell), charge(7, Op::Cell), charge(1, Op::Reset)]
        {
            assert_eq!(taken(&other, &reply).0, None, "{other:?}");
        }
        let reservation = Reservation {
            id: ChargeId(1),
            units: 2,
            position: ChargePosition(9),
            until: Timestamp::from_millis(5),
            on_expiry: OnExpiry::Release,
        };
        let reserved = Cell::Reserved(Box::new(ReservedCell {
            cell: cell.clone(),
            reservations: vec![reservation],
        }));
        let reply = [&[61, 0, 0, 0][..], &reserved.to_bytes()].concat();
        assert_eq!(taken(&cells, &reply), (Some(Some(reserved)), 0), "with what is held of it");
        assert_eq!(taken(&charge(2, Op::Cell), &reply).0, None);
        let altered = [&[15, 0, 0, 0, b'f'][..], &[0xff; 14]].concat();
        assert_eq!(taken(&cells, &altered).0, None, "numbers that no store keeps");
    }
}
