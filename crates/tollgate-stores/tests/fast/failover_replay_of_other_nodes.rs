//! Tests of the failover replay of a node after refunds and resets through another node.

use tollgate::model::{Algorithm, Limit, Operation, Reading};
use tollgate::store::Memory;

use crate::failover_replay::{QUOTA, at_once, nodes, takes};
use crate::setup::{NOW, apply_one, of_every_kind, refund, user};

/// Returns the limits whose usage is recorded from readings, which contain the charges of all
/// nodes.
fn recorded_by_readings() -> impl Iterator<Item = Limit> {
    let is_read = |limit: &Limit| {
        matches!(limit.algorithm(), Algorithm::FixedWindow(_) | Algorithm::TokenBucket(_))
    };
    of_every_kind(QUOTA).into_iter().filter(is_read)
}

/// The bug: a node recorded 80 used units. Another node returned most of them. The first node
/// charged the subject on and received lower readings, but its record of 80 units stayed, and
/// stayed new. A failover at any time until the end of the window made the 80 units count again.
#[test]
fn units_that_another_node_returned_long_before_a_failover_counted_again() {
    let returned: [fn(&Reading) -> Operation; 2] =
        [|_| Operation::Reset, |last| refund(60, 80, last.position)];
    for limit in recorded_by_readings() {
        for operation in returned {
            let (servers, [first, second]) = nodes();
            let last = takes(&first, &limit, 1..=80);
            at_once(apply_one(&second, NOW, &limit, &user(1), operation(&last))).unwrap();
            let used = takes(&first, &limit, 81..=83).used;
            assert!(used <= 23, "{used} of {limit:?}");
            servers.promote(Memory::default());
            assert_eq!(takes(&first, &limit, 84..=84).used, used + 1, "{limit:?}");
        }
    }
}
