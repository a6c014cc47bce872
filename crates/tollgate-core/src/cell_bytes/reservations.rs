//! The encoding of reservations. In the bytes of a cell, reservations come before the state of the
//! algorithm.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{ID_BYTES, NUMBER_BYTES, extend, only};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::decide::{Cell, ReservedCell};
use crate::reservation::{MAX_RESERVATIONS, OnExpiry, Reservation};
use crate::time::Timestamp;

/// The size of an encoded reservation in bytes: an id, three numbers, and the behavior at its
/// expiry.
const HOLD_BYTES: usize = ID_BYTES + 3 * NUMBER_BYTES + 1;

const RELEASE: u8 = 0;
const CHARGE: u8 = 1;

pub(super) fn push(bytes: &mut Vec<u8>, reserved: &ReservedCell) {
    super::push(bytes, b'h', [reserved.reservations.len() as u64]);
    for reservation in &reserved.reservations {
        bytes.extend_from_slice(&reservation.id.0.to_be_bytes());
        extend(bytes, [reservation.units, reservation.position.0, reservation.until.as_millis()]);
        bytes.push(match reservation.on_expiry {
            OnExpiry::Release => RELEASE,
            OnExpiry::Charge => CHARGE,
        });
    }
    reserved.cell.append_to(bytes);
}

/// Decodes a cell from the bytes of its reservations and of the state that follows them. Returns
/// `None` if the reservations are not sorted by expiry, if one of them has no units, or if the
/// state does not support reservations.
pub(super) fn read(bytes: &[u8]) -> Option<Cell> {
    let (count, rest) = bytes.split_at_checked(NUMBER_BYTES)?;
    let [count] = only(count)?;
    let count =
        usize::try_from(count).ok().filter(|count| (1..=MAX_RESERVATIONS).contains(count))?;
    let (records, state) = rest.split_at_checked(count * HOLD_BYTES)?;
    let reservations: Vec<Reservation> =
        records.chunks_exact(HOLD_BYTES).map(read_one).collect::<Option<_>>()?;
    let cell = match state.first()? {
        b'c' | b'h' => return None,
        _ => Cell::from_bytes(state)?,
    };
    let in_order = reservations.is_sorted_by_key(|reservation| reservation.until);
    in_order.then(|| Cell::Reserved(Box::new(ReservedCell { cell, reservations })))
}

fn read_one(record: &[u8]) -> Option<Reservation> {
    let (id, rest) = record.split_first_chunk::<ID_BYTES>()?;
    let (on_expiry, numbers) = rest.split_last()?;
    let [units, position, until] = only(numbers)?;
    let on_expiry = match *on_expiry {
        RELEASE => OnExpiry::Release,
        CHARGE => OnExpiry::Charge,
        _ => return None,
    };
    let (id, position) = (ChargeId(u128::from_be_bytes(*id)), ChargePosition(position));
    let until = Timestamp::from_millis(until);
    (units > 0).then_some(Reservation { id, units, position, until, on_expiry })
}
