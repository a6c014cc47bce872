//! Which side took a charge: one more bit of its mark.
//!
//! A step's own marks are below 2^53. The eleven bits above it are a stack with one bit for each
//! fallback around the step, the outermost last: one for the stand-in, zero for the store. Marks
//! that no stand-in made are unchanged.

use tollgate_core::{Ask, MAX_EXACT, Mark, Reading};

/// Who took a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The store that is asked first.
    Store,
    /// What stands in for it.
    StandIn,
}

const STEP_BITS: u32 = MAX_EXACT.count_ones();

/// Notes in the reading's mark who made it.
pub(super) const fn tag(reading: &mut Reading, side: Side) {
    let Mark(mark) = reading.mark;
    let sides = (mark >> STEP_BITS) << 1 | side as u64;
    reading.mark = Mark(sides << STEP_BITS | mark & MAX_EXACT);
}

/// Whether any fallback around the step took the charge that this asks about at its stand-in.
pub(super) fn is_tagged(ask: Ask) -> bool {
    mark_of(ask).is_some_and(|mark| mark.0 > MAX_EXACT)
}

/// Who took what `ask` gives back, settles or puts off.
pub(super) fn side(ask: Ask) -> Side {
    match mark_of(ask) {
        Some(Mark(mark)) if mark >> STEP_BITS & 1 == 1 => Side::StandIn,
        _ => Side::Store,
    }
}

/// Where the charge lies that `ask` gives back, settles or puts off.
pub(super) const fn mark_of(ask: Ask) -> Option<Mark> {
    match ask {
        Ask::Refund { mark, .. } | Ask::Settle { mark, .. } | Ask::Extend { mark, .. } => {
            Some(mark)
        }
        _ => None,
    }
}

/// What is asked as the side that took the charge knows it.
pub(super) fn untagged(mut ask: Ask) -> Ask {
    if let Ask::Refund { mark, .. } | Ask::Settle { mark, .. } | Ask::Extend { mark, .. } = &mut ask
    {
        let sides = mark.0 >> STEP_BITS >> 1;
        *mark = Mark(sides << STEP_BITS | mark.0 & MAX_EXACT);
    }
    ask
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate_core::{ChargeId, Cost, Repeats};

    use super::*;

    proptest! {
        #[test]
        fn every_layer_reads_back_what_it_wrote(
            own in 0..=MAX_EXACT,
            stood_in in prop::collection::vec(any::<bool>(), 0..=11),
        ) {
            let side_of = |stood_in: &bool| if *stood_in { Side::StandIn } else { Side::Store };
            let sides: Vec<_> = stood_in.iter().map(side_of).collect();
            let mut reading = Reading { mark: Mark(own), ..Reading::default() };
            sides.iter().for_each(|side| tag(&mut reading, *side));
            let refund = |mark| Ask::Refund {
                cost: Cost::ONE,
                mark,
                id: ChargeId(1),
                repeats: Repeats::Impossible,
            };
            let mut ask = refund(reading.mark);
            prop_assert_eq!(is_tagged(ask), sides.contains(&Side::StandIn));
            for written in sides.iter().rev() {
                prop_assert_eq!(side(ask), *written);
                ask = untagged(ask);
            }
            prop_assert_eq!(ask, refund(Mark(own)));
        }
    }
}
