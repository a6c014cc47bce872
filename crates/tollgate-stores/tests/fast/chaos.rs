//! Random calls with random faults, and the invariants that are always true.

use std::collections::HashMap;
use std::num::NonZeroU32;

use proptest::prelude::*;
use tollgate::model::{
    Admission, Charge, ChargePosition, Limit, Operation, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;
use tollgate_stores::deny_cache::DenyCacheTtl;
use tollgate_stores::{DenyCache, Fallback, LocalShare};

use crate::atomic::over;
use crate::faulty::{Faulty, Trouble};
use crate::setup::{Call, NOW, WINDOW, at_once, calendar, calls, charge, refund, replay, user};

const QUOTA: u64 = 5;

fn troubles() -> impl Strategy<Value = Vec<Trouble>> {
    let trouble = prop_oneof![
        3 => Just(Trouble::None),
        1 => Just(Trouble::Lost(StoreError::Unavailable)),
        1 => Just(Trouble::Unheard(StoreError::TimedOut)),
    ];
    prop::collection::vec(trouble, 300)
}

/// The units that were admitted and not refunded. The key is the limit, the user and the calendar
/// window.
#[derive(Default)]
struct History {
    admitted: HashMap<(String, Vec<u8>, u64), u64>,
    receipts: Vec<Receipt>,
}

struct Receipt {
    limit: Limit,
    number: u64,
    cost: u64,
    position: ChargePosition,
    id: u128,
    window: u64,
}

fn window(now: Timestamp) -> u64 {
    now.as_millis() / WINDOW.get()
}

impl History {
    /// Records a call, and checks every number in it.
    fn note(
        &mut self,
        store: &impl Store,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<(), TestCaseError> {
        let Ok(readings) = at_once(store.apply(now, charges)) else { return Ok(()) };
        prop_assert_eq!(readings.len(), charges.len());
        for (charge, reading) in charges.iter().zip(readings.iter()) {
            let Operation::Charge { cost, id } = charge.operation else { continue };
            let remaining = charge.limit.capacity().saturating_sub(reading.used);
            prop_assert!(
                reading.admission == Admission::Now || remaining < cost.needed(),
                "{reading:?}"
            );
            if readings.all_admitted() && cost.get() > 0 {
                let (limit, number) = (charge.limit.clone(), number_of(charge));
                let (cost, position, id, window) =
                    (cost.get(), reading.position, id.0, window(now));
                *self.admitted.entry(key(&limit, number, window)).or_default() += cost;
                self.receipts.push(Receipt { limit, number, cost, position, id, window });
            }
        }
        Ok(())
    }

    /// Redeems a receipt.
    fn give_back(
        &mut self,
        store: &impl Store,
        now: Timestamp,
        which: usize,
    ) -> Result<(), TestCaseError> {
        if self.receipts.is_empty() {
            return Ok(());
        }
        let receipt = self.receipts.swap_remove(which % self.receipts.len());
        let subject = user(receipt.number);
        let operation = refund(receipt.cost, receipt.id, receipt.position);
        let charges = [charge(&receipt.limit, &subject, operation)];
        let refunded = match at_once(store.apply(now, &charges)) {
            Ok(readings) => readings[0].refunded,
            // The result is unknown. If the refund was executed, other requests may have used the
            // units since the refund.
            Err(_) if window(now) == receipt.window => receipt.cost,
            Err(_) => 0,
        };
        prop_assert!(refunded <= receipt.cost);
        prop_assert!(refunded == 0 || window(now) == receipt.window);
        let admitted =
            self.admitted.entry(key(&receipt.limit, receipt.number, receipt.window)).or_default();
        prop_assert!(refunded <= *admitted);
        *admitted -= refunded;
        Ok(())
    }

    fn most_in_a_window(&self) -> u64 {
        self.admitted.values().copied().max().unwrap_or(0)
    }
}

fn key(limit: &Limit, number: u64, window: u64) -> (String, Vec<u8>, u64) {
    (limit.name().to_owned(), user(number).as_bytes().to_vec(), window)
}

fn number_of(charge: &Charge<'_>) -> u64 {
    (0..).find(|number| user(*number) == *charge.subject).unwrap_or_default()
}

fn run(
    store: &impl Store,
    shards: &[&Faulty],
    trace: &[Call],
    troubles: &[Trouble],
    give_back: &[Option<usize>],
) -> Result<u64, TestCaseError> {
    for (shard, first) in shards.iter().zip(0..) {
        shard.next(troubles.iter().skip(first).step_by(shards.len()).cloned());
    }
    let limits = [calendar("wide", QUOTA), calendar("narrow", QUOTA)];
    let mut history = History::default();
    let mut give_back = give_back.iter().cycle();
    replay(trace, &limits, |now, charges| {
        history.note(store, now, charges)?;
        match give_back.next() {
            Some(Some(which)) => history.give_back(store, now, *which),
            _ => Ok(()),
        }
    })?;
    prop_assert!(window(NOW) * WINDOW.get() == NOW.as_millis());
    Ok(history.most_in_a_window())
}

proptest! {
    #[test]
    fn troubles_never_admit_more_than_the_quota(
        trace in calls(2, 3),
        troubles in troubles(),
        give_back in prop::collection::vec(prop::option::of(any::<usize>()), 1..20),
    ) {
        let shards = over([Faulty::new(), Faulty::new(), Faulty::new()]);
        let store = DenyCache::new(&shards);
        let faulty: Vec<_> =
            shards.partitions().shards().iter().map(|shard| &shard.store).collect();
        let most = run(&store, &faulty, &trace, &troubles, &give_back)?;
        prop_assert!(most <= QUOTA, "{most}");
    }

    #[test]
    fn a_stand_in_admits_no_more_than_its_bound(
        trace in calls(2, 3),
        troubles in troubles(),
        give_back in prop::collection::vec(prop::option::of(any::<usize>()), 1..20),
        nodes in 1..6_u32,
    ) {
        let nodes = NonZeroU32::new(nodes).unwrap();
        let node = || Fallback::new(Faulty::new(), LocalShare::new(Memory::default(), nodes));
        let shards = over([node(), node(), node()]);
        let store = DenyCache::new(&shards).with_ttl(DenyCacheTtl::UntilReset);
        let fallbacks: Vec<_> =
            shards.partitions().shards().iter().map(|shard| &shard.store).collect();
        let faulty: Vec<_> = fallbacks.iter().map(|fallback| fallback.store()).collect();
        let most = run(&store, &faulty, &trace, &troubles, &give_back)?;
        // A single node admits one share without the store. The bound gives the sum over all nodes.
        let part = fallbacks[0].fallback_store().part_of(QUOTA);
        prop_assert!(most <= QUOTA + part, "{most} with parts of {part}");
        let together = fallbacks[0].fallback_store().max_admitted_units(&calendar("wide", QUOTA));
        prop_assert_eq!(together, part * u64::from(nodes.get()));
    }
}
