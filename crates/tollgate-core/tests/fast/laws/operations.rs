//! Operations that only read leave the state as it is, and every charge has an operation that
//! undoes it.

use proptest::prelude::*;
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Deduplication, Millis, Operation,
    Timestamp, assess, decide,
};

use crate::laws::world::{World, acts, any_algorithm, config};

const ID: ChargeId = ChargeId(u128::MAX);

fn reading(cost: Cost, until: Timestamp) -> [Operation; 3] {
    let (none, id) = (Cost::PEEK, ID);
    [
        Operation::Peek { cost },
        Operation::Charge { cost: none, id },
        Operation::Reserve { cost: none, id, until },
    ]
}

fn charging(cost: Cost, until: Timestamp) -> [Operation; 2] {
    [Operation::Charge { cost, id: ID }, Operation::Reserve { cost, id: ID, until }]
}

fn others(cost: Cost, until: Timestamp) -> [Operation; 5] {
    let (id, position, deduplication) = (ID, ChargePosition(0), Deduplication::Unneeded);
    [
        Operation::Refund { cost, position, id, deduplication },
        Operation::Extend { id, position, until },
        Operation::Settle { id, position, cost },
        Operation::Renew { id },
        Operation::Reset,
    ]
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn reading_changes_nothing(algorithm in any_algorithm(), acts in acts(), cost in 0..9_u64) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let (now, cost) = (Timestamp::from_millis(world.now), Cost::new(cost).unwrap());
        for operation in reading(cost, now.after(Millis::new(9))) {
            prop_assert!(operation.is_read_only());
            let (_, cell) = decide(world.cell.clone(), &world.limit, operation, now);
            prop_assert_eq!(&cell, &world.cell, "{:?}", operation);
        }
    }

    #[test]
    fn what_is_undone_was_never_used(
        algorithm in any_algorithm(), acts in acts(), cost in 1..6_u64,
    ) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let (now, cost) = (Timestamp::from_millis(world.now), Cost::new(cost).unwrap());
        for operation in charging(cost, now.after(Millis::new(1))) {
            let (reading, cell) = decide(world.cell.clone(), &world.limit, operation, now);
            if reading.admission != Admission::Now {
                continue;
            }
            let inverse = operation.inverse(reading.position).unwrap();
            let (_, cell) = decide(cell, &world.limit, inverse, now);
            // A token bucket may need one more millisecond, because refunds are rounded down.
            let later = now.after(Millis::new(1));
            let at = if matches!(algorithm, Algorithm::TokenBucket(_)) { later } else { now };
            let used = |cell: Option<&Cell>| assess(cell, &world.limit, Cost::PEEK, at).used;
            prop_assert_eq!(used(cell.as_ref()), used(world.cell.as_ref()), "{:?}", operation);
        }
    }
}

#[test]
fn only_a_charge_or_a_reservation_of_units_is_undone() {
    let until = Timestamp::from_millis(1_000);
    let is_undone = |operation: &Operation| operation.inverse(ChargePosition(7)).is_some();
    assert!(charging(Cost::ONE, until).iter().all(is_undone));
    assert!(!reading(Cost::ONE, until).iter().any(is_undone));
    assert!(!others(Cost::ONE, until).iter().any(is_undone));
}

#[test]
fn only_reading_operations_are_read_only() {
    let until = Timestamp::from_millis(1_000);
    for cost in [Cost::PEEK, Cost::ONE] {
        assert!(others(cost, until).iter().all(|operation| !operation.is_read_only()));
        assert!(reading(cost, until).iter().all(Operation::is_read_only));
    }
    assert!(charging(Cost::ONE, until).iter().all(|operation| !operation.is_read_only()));
}
