use tollgate_core::algo::SlidingWindow;
use tollgate_core::{Algorithm, ChargeId, Millis};

use super::*;

const SECOND: u64 = 1_000;

fn reading(block: u64, used: u64) -> Reading {
    Reading {
        admission: Admission::Now,
        used,
        position: ChargePosition(block),
        found: StoredState::Present,
        ..Reading::default()
    }
}

fn at(block: u64) -> Timestamp {
    Timestamp::from_millis(block * SECOND)
}

/// Returns the entry of a subject that was charged one unit in `block`.
fn entry(block: u64) -> LeaseEntry {
    let (window, precision) = (Millis::new(60 * SECOND), Millis::new(SECOND));
    let limit = SlidingWindow::new(1_000, window, precision).unwrap();
    let limit = Limit::new("limit", Algorithm::SlidingWindow(limit)).unwrap();
    let account = LeaseSubject { limit, subject: Subject::default() };
    LeaseEntry::of(account, &reading(block, 1), Cost::ONE, at(block)).unwrap()
}

fn charged(entry: &mut LeaseEntry, block: u64, used: u64) {
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    entry.learn(operation, &reading(block, used), Cost::ONE, at(block), Some(entry.replies()));
}

/// Returns the units and the blocks of all refunds of the next sweeps.
fn refunds(entry: &mut LeaseEntry) -> Vec<(u64, u64)> {
    (0..4).filter_map(|_| entry.surplus()).map(refund).collect()
}

/// Returns the units and the block of a refund.
fn refund(operation: Operation) -> (u64, u64) {
    match operation {
        Operation::Refund { cost, position, .. } => (cost.get(), position.0),
        other => panic!("{other:?}"),
    }
}

/// The bug: a node that ended, and a node that sent a charge to the store, refunded only the units
/// of the current block. A peek counted the units of the block before as used.
#[test]
fn the_unused_units_of_the_block_before_were_not_refunded_with_all_units() {
    let with_closed_lease = || {
        let mut entry = entry(1);
        let sent_at = entry.replies();
        entry.finish(50, &reading(1, 51), at(1), sent_at);
        charged(&mut entry, 2, 52);
        entry
    };
    let mut entry = with_closed_lease();
    assert_eq!(entry.corrected(&reading(2, 52), Some(entry.replies())), None);
    let refunds: Vec<_> = entry.all_unused(at(2)).into_iter().flatten().map(refund).collect();
    assert_eq!(refunds, [(50, 1)]);
    assert_eq!(entry.all_unused(at(2)), [None, None]);
    assert_eq!(entry.corrected(&reading(2, 2), Some(entry.replies())), Some(reading(2, 2)));
    assert_eq!(with_closed_lease().all_unused(at(61)), [None, None], "the units are void");
}

/// The bug: units that were unused in a block were forgotten if a later block was also left
/// with unused units before the next sweep. They stayed used until the window ended.
#[test]
fn unused_units_of_a_block_were_forgotten_in_the_second_block_after_it() {
    let mut entry = entry(1);
    let sent_at = entry.replies();
    let taken = entry.finish(50, &reading(1, 51), at(1), sent_at);
    assert_eq!(taken, (LeaseOutcome::Acquired, false));
    let sent_at = entry.replies();
    charged(&mut entry, 2, 52);
    // The answer to a lease that was under way when the block changed.
    let (_, is_elsewhere) = entry.finish(30, &reading(2, 82), at(2), sent_at);
    charged(&mut entry, 3, 83);
    let mut refunded = refunds(&mut entry);
    refunded.extend(is_elsewhere.then_some((30, 2)));
    assert_eq!(refunded, [(50, 1), (30, 2)]);
}

/// The bug: the units of a refund were added to a lease whose earlier block still had unused
/// units, and the units of the earlier block were forgotten when the block changed again.
#[test]
fn a_refund_replaced_the_unused_units_of_the_block_before() {
    let (config, mut entry) = (LeaseConfig::default(), entry(1));
    let sent_at = entry.replies();
    entry.finish(50, &reading(1, 51), at(1), sent_at);
    charged(&mut entry, 2, 52);
    charged(&mut entry, 2, 53);
    let refund = refunded(1, ChargePosition(2));
    let is_local = entry.answer(refund, at(2), &config).is_some();
    charged(&mut entry, 3, 54);
    let expected: &[_] = if is_local { &[(50, 1), (1, 2)] } else { &[(50, 1)] };
    assert_eq!(refunds(&mut entry), expected);
}

/// The bug: a lease that was closed twice at one position kept only the units of the second
/// time.
#[test]
fn a_lease_that_was_closed_twice_kept_the_units_of_one_time() {
    let mut entry = entry(1);
    let sent_at = entry.replies();
    entry.finish(50, &reading(1, 51), at(1), sent_at);
    let reserved = |used| Reading { reserved: 1, ..reading(1, used) };
    let refund = refunded(1, ChargePosition(1));
    let sent_at = entry.replies();
    entry.learn(refund, &reserved(52), Cost::PEEK, at(1), Some(sent_at));
    // The answer to a lease that was under way when the subject got a reservation.
    let (_, is_refunded) = entry.finish(30, &reading(1, 82), at(1), sent_at);
    entry.learn(refund, &reserved(83), Cost::PEEK, at(1), Some(sent_at));
    let units: u64 = refunds(&mut entry).iter().map(|(units, _)| units).sum();
    assert_eq!(units, if is_refunded { 50 } else { 80 });
}
