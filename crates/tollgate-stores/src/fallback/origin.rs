//! Records which store made a charge, the main store or the fallback, in an additional bit of the
//! charge's position.
//!
//! A store's own positions are below 2^53. The eleven bits above are a stack with one bit for each
//! fallback around the store. The bit of the outermost fallback was pushed last. A bit is 1 if the
//! fallback made the charge, and 0 if the store made the charge. The position of a charge that no
//! fallback made is unchanged.

use tollgate_core::{ChargePosition, MAX_EXACT, Operation, Reading};

/// The store that made a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decider {
    /// The main store made the charge.
    Store,
    /// The fallback made the charge.
    Fallback,
}

const STEP_BITS: u32 = MAX_EXACT.count_ones();

/// Records in the position of the reading which store made the charge.
pub(super) const fn tag(reading: &mut Reading, side: Decider) {
    let ChargePosition(position) = reading.position;
    let sides = (position >> STEP_BITS) << 1 | side as u64;
    reading.position = ChargePosition(sides << STEP_BITS | position & MAX_EXACT);
}

/// Returns whether `operation` refers to a charge that any of the nested fallbacks made.
pub(super) fn is_tagged(operation: Operation) -> bool {
    mark_of(operation).is_some_and(|position| position.0 > MAX_EXACT)
}

/// Returns the store that made the charge which `operation` refunds, settles or extends.
pub(super) fn decider(operation: Operation) -> Decider {
    match mark_of(operation) {
        Some(ChargePosition(position)) if position >> STEP_BITS & 1 == 1 => Decider::Fallback,
        _ => Decider::Store,
    }
}

/// Returns the position of the charge that `operation` refunds, settles or extends. Returns `None`
/// for every other operation.
pub(super) const fn mark_of(operation: Operation) -> Option<ChargePosition> {
    match operation {
        Operation::Refund { position, .. }
        | Operation::Settle { position, .. }
        | Operation::Extend { position, .. } => Some(position),
        _ => None,
    }
}

/// Returns the operation with the charge's original position: the position that the store which
/// made the charge had returned.
pub(super) fn untagged(mut operation: Operation) -> Operation {
    if let Operation::Refund { position, .. }
    | Operation::Settle { position, .. }
    | Operation::Extend { position, .. } = &mut operation
    {
        let sides = position.0 >> STEP_BITS >> 1;
        *position = ChargePosition(sides << STEP_BITS | position.0 & MAX_EXACT);
    }
    operation
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate_core::{ChargeId, Cost, Deduplication};

    use super::*;

    proptest! {
        #[test]
        fn every_layer_reads_back_what_it_wrote(
            own in 0..=MAX_EXACT,
            is_fallback in prop::collection::vec(any::<bool>(), 0..=11),
        ) {
            let side_of = |is_fallback: &bool| if *is_fallback { Decider::Fallback } else { Decider::Store };
            let sides: Vec<_> = is_fallback.iter().map(side_of).collect();
            let mut reading = Reading { position: ChargePosition(own), ..Reading::default() };
            sides.iter().for_each(|side| tag(&mut reading, *side));
            let refund = |position| Operation::Refund {
                cost: Cost::ONE,
                position,
                id: ChargeId(1),
                deduplication: Deduplication::Unneeded,
            };
            let mut operation = refund(reading.position);
            prop_assert_eq!(is_tagged(operation), sides.contains(&Decider::Fallback));
            for written in sides.iter().rev() {
                prop_assert_eq!(decider(operation), *written);
                operation = untagged(operation);
            }
            prop_assert_eq!(operation, refund(ChargePosition(own)));
        }
    }
}
