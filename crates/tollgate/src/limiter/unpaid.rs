//! Unpaid costs: costs that a settlement could not charge because the limit was full. The limiter
//! charges them later.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tollgate_core::charge::{Charge, Operation};
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Cost, Limit, Millis, Reading, Store, Subject, Timestamp};

use super::Limiter;
use super::counter_key::{CounterKey, counter_key};
use crate::receipt::{Receipt, has_permits, new_charge_id};

/// The most pairs of a limit and a subject for which a node carries over unpaid costs. A further
/// pair replaces the oldest pair.
pub const MAX_UNPAID: usize = 4_096;

/// The longest time that a decision waits while another request charges the unpaid cost of the same
/// limit and subject.
pub const MAX_UNPAID_WAIT: Duration = Duration::from_secs(1);

/// The lifetime of the reservation with which an unpaid cost is charged. The reservation expires
/// after this time if its settlement is lost.
const HOLD: Millis = Millis::from_secs(1);

/// The unpaid costs of this node, by limit and subject.
///
/// A client can reserve less than its request costs. The settlement charges as much of the rest as
/// the limit and its overdraft allow. The remaining cost is charged before the next decisions on
/// the same subject, in one window after another, until the whole cost is paid.
#[derive(Debug, Default)]
pub(super) struct UnpaidCosts {
    table: Mutex<HashMap<CounterKey, Unpaid>>,
    is_used: AtomicBool,
}

#[derive(Clone, Debug)]
struct Unpaid {
    units: u64,
    since: Timestamp,
    /// Set while a request charges the units.
    charging: Option<ChargeState>,
}

/// The receiver of the state of a charge: `true` after the charge has ended. The channel is closed
/// without a `true` if the client of the charging request disconnects.
type ChargeState = watch::Receiver<bool>;

/// What a decision has to do about the unpaid cost of a subject.
enum UnpaidAction<'l> {
    /// The decision charges the cost.
    Charge(Charging<'l>),
    /// The decision waits, because another request charges the cost.
    Wait(ChargeState),
}

/// An unpaid cost that a request charges now. The cost stays in the table with the mark that it is
/// being charged. When this value is dropped, the mark is removed, and the units that were not
/// charged remain unpaid. A client that disconnects during the charge therefore does not lose its
/// unpaid cost.
struct Charging<'l> {
    costs: &'l UnpaidCosts,
    key: CounterKey,
    units: u64,
    paid: u64,
    state: watch::Sender<bool>,
}

impl Charging<'_> {
    /// Records that the limit had room for `paid` units, and lets the waiting decisions continue.
    fn end(mut self, paid: u64) {
        self.paid = paid;
        self.settle();
        self.state.send_replace(true);
    }

    /// Removes the paid units and the mark from the table. Does nothing if the entry is gone or
    /// another request charges the cost: a reset cancels unpaid costs, and a full table replaces
    /// entries.
    fn settle(&self) {
        self.costs.with(|table| {
            let Some(unpaid) = table.get_mut(&self.key) else { return };
            if !self.is_mark_of(unpaid) {
                return;
            }
            unpaid.charging = None;
            unpaid.units = unpaid.units.saturating_sub(self.paid);
            if unpaid.units == 0 {
                table.remove(&self.key);
            }
        });
    }

    /// Returns the cost that is still to be charged. Returns a cost of 0 if a reset cancelled the
    /// cost or a full table replaced it.
    fn cost(&self) -> Cost {
        let is_marked = |unpaid: &Unpaid| self.is_mark_of(unpaid);
        match self.costs.with(|table| table.get(&self.key).is_some_and(is_marked)) {
            true => Cost::up_to(self.units),
            false => Cost::PEEK,
        }
    }

    /// Returns whether `unpaid` has the mark of this charge.
    fn is_mark_of(&self, unpaid: &Unpaid) -> bool {
        let is_own = |state: &ChargeState| state.same_channel(&self.state.subscribe());
        unpaid.charging.as_ref().is_some_and(is_own)
    }
}

impl Drop for Charging<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}

impl UnpaidCosts {
    /// Returns whether no subject has unpaid costs. This check is one atomic load.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_used.load(Ordering::Acquire)
    }

    fn add(&self, limit: &Limit, subject: &Subject, units: u64, since: Timestamp) {
        self.with(|table| {
            let key = counter_key(limit, subject);
            if let Some(known) = table.get_mut(&key) {
                known.units = known.units.saturating_add(units);
                return;
            }
            if table.len() >= MAX_UNPAID {
                let oldest = table.iter().min_by_key(|(_, unpaid)| unpaid.since);
                if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                    table.remove(&oldest);
                }
            }
            table.insert(key, Unpaid { units, since, charging: None });
        });
    }

    /// Marks the unpaid cost of a subject as being charged. If another request charges the cost
    /// already, returns the state of this charge. Returns `None` if the subject has no unpaid cost.
    fn begin_charge(&self, limit: &Limit, subject: &Subject) -> Option<UnpaidAction<'_>> {
        let key = counter_key(limit, subject);
        self.with(|table| {
            let unpaid = table.get_mut(&key)?;
            if let Some(charging) = &unpaid.charging {
                return Some(UnpaidAction::Wait(charging.clone()));
            }
            let (state, charging) = watch::channel(false);
            unpaid.charging = Some(charging);
            Some(UnpaidAction::Charge(Charging {
                costs: self,
                key,
                units: unpaid.units,
                paid: 0,
                state,
            }))
        })
    }

    /// Cancels the unpaid costs of the subjects of `planned` on their limits.
    pub(super) fn cancel(&self, planned: &[PlannedCharge]) {
        if self.is_empty() {
            return;
        }
        self.with(|table| {
            for PlannedCharge { limit, subject, .. } in planned {
                table.remove(&counter_key(limit, subject));
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<CounterKey, Unpaid>) -> T) -> T {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let done = work(&mut table);
        self.is_used.store(!table.is_empty(), Ordering::Release);
        done
    }
}

impl<S: Store> Limiter<S> {
    /// Records the units of `receipt` that its settlement `charges` could not charge. Leaves out
    /// limits that could not refuse the request: a limit must not be charged for its candidate, and
    /// no decision charges the unpaid costs of a limit that is not enforced.
    pub(super) fn carry_over(
        &self,
        now: Timestamp,
        receipt: &Receipt,
        charges: &[Charge<'_>],
        readings: &[Reading],
    ) {
        let charges = charges.iter().zip(receipt.enforced_costs());
        for ((charge, held), reading) in charges.zip(readings) {
            let (Operation::Settle { cost, .. }, Some(held)) = (charge.operation, held) else {
                continue;
            };
            let excess = cost.get().saturating_sub(held.get());
            let units = excess.saturating_sub(reading.added);
            if units > 0 && reading.admission == Admission::Now && !has_permits(charge.limit) {
                self.unpaid.add(charge.limit, charge.subject, units, now);
            }
        }
    }

    /// Charges the unpaid costs of the subjects of `planned`, as far as the limits have units left.
    /// The rest stays unpaid. While another request charges one of these costs, this request waits,
    /// so a burst of requests cannot use the units with which the cost has to be paid.
    pub(super) async fn charge_unpaid(&self, now: Timestamp, planned: &[PlannedCharge]) {
        let mut until = None;
        for PlannedCharge { limit, subject, .. } in planned {
            while let Some(action) = self.unpaid.begin_charge(limit, subject) {
                match action {
                    UnpaidAction::Charge(charging) => {
                        let paid = self.pay(now, limit, subject, &charging).await;
                        charging.end(paid);
                        break;
                    }
                    UnpaidAction::Wait(state) => match ended(state, &mut until).await {
                        // After the end of the charge, the limit had no room for the units that are
                        // still unpaid. After the longest wait, the units stay unpaid. The costs of
                        // the next limits are still charged.
                        ChargeEnd::Ended | ChargeEnd::TimedOut => break,
                        // The charging client disconnected, so another request charges the cost.
                        ChargeEnd::Dropped => {}
                    },
                }
            }
        }
    }

    /// Charges as many units of `charging` as the limit and its overdraft have left. Returns the
    /// number of charged units. If the store's answer is lost, or the caller drops this future, the
    /// limiter charges the same units again later.
    async fn pay(
        &self,
        now: Timestamp,
        limit: &Limit,
        subject: &Subject,
        charging: &Charging<'_>,
    ) -> u64 {
        let id = new_charge_id();
        let charge = |operation| Charge { limit, subject, operation };
        let reserve = Operation::Reserve { cost: Cost::ONE, id, until: now.after(HOLD) };
        let first = self.store.apply(now, &[charge(reserve)]).await.ok();
        let first = first.and_then(|readings| readings.iter().next().copied());
        let Some(first) = first.filter(|reading| reading.admission == Admission::Now) else {
            return 0;
        };
        // If a reset cancelled the cost meanwhile, the reservation may be in the new window. The
        // cost must not be charged there.
        let cost = charging.cost();
        let settle = Operation::Settle { id, position: first.position, cost };
        let rest = self.store.apply(now, &[charge(settle)]).await.ok();
        let rest = rest.and_then(|readings| readings.iter().next().copied());
        match rest.filter(|reading| reading.admission == Admission::Now) {
            Some(rest) => rest.added.saturating_add(Cost::ONE.get()).min(cost.get()),
            None => 0,
        }
    }
}

/// How the charge of an unpaid cost by another request ended.
enum ChargeEnd {
    /// The store answered, or failed.
    Ended,
    /// The charging client disconnected.
    Dropped,
    /// The charge has not ended within [`MAX_UNPAID_WAIT`].
    TimedOut,
}

/// Waits for the end of a charge. `until` is the time at which all waits of the decision together
/// end. The first wait sets this time. Without a runtime there is no timer, so the wait is not
/// bounded.
async fn ended(mut state: ChargeState, until: &mut Option<Instant>) -> ChargeEnd {
    let ended = async {
        match state.wait_for(|has_ended| *has_ended).await {
            Ok(_) => ChargeEnd::Ended,
            Err(_) => ChargeEnd::Dropped,
        }
    };
    if Handle::try_current().is_err() {
        return ended.await;
    }
    let until = *until.get_or_insert_with(|| Instant::now() + MAX_UNPAID_WAIT);
    timeout_at(until, ended).await.unwrap_or(ChargeEnd::TimedOut)
}

#[cfg(test)]
mod tests {
    use tollgate_core::Algorithm;
    use tollgate_core::algo::{Anchor, FixedWindow};

    use super::*;
    use crate::HashKey;

    fn limit() -> Limit {
        let window = FixedWindow::new(1, Millis::from_secs(1), Anchor::FirstRequest).unwrap();
        Limit::new("tokens", Algorithm::FixedWindow(window)).unwrap()
    }

    #[test]
    fn the_oldest_unpaid_cost_makes_room_for_a_new_one() {
        let (limit, key) = (limit(), HashKey::random());
        let subject = |number: u64| {
            let number = number.to_string();
            Subject::new([("key", tollgate_core::Value::Clear(number.as_bytes()))], &key)
        };
        let unpaid = UnpaidCosts::default();
        assert!(unpaid.is_empty());
        let pay = |number: u64| match unpaid.begin_charge(&limit, &subject(number)) {
            Some(UnpaidAction::Charge(charging)) => {
                let units = charging.units;
                charging.end(units);
                Some(units)
            }
            Some(UnpaidAction::Wait(_)) | None => None,
        };
        for number in 0..=MAX_UNPAID as u64 {
            unpaid.add(&limit, &subject(number), number + 1, Timestamp::from_millis(number));
        }
        assert_eq!(unpaid.with(|table| table.len()), MAX_UNPAID);
        assert_eq!(pay(0), None, "replaced");
        // A further cost of a known pair keeps the time of the first cost.
        let last = MAX_UNPAID as u64;
        unpaid.add(&limit, &subject(last), 1, Timestamp::from_millis(9_999));
        let since = unpaid.with(|table| table[&counter_key(&limit, &subject(last))].since);
        assert_eq!((pay(last), since.as_millis()), (Some(4_098), 4_096));
        for number in 1..last {
            assert_eq!(pay(number), Some(number + 1));
        }
        assert!(unpaid.is_empty());
    }

    #[test]
    fn the_charge_of_a_replaced_cost_does_not_change_a_later_cost_of_the_same_subject() {
        let limit = limit();
        let (unpaid, subject) = (UnpaidCosts::default(), Subject::new([], &HashKey::random()));
        let charge = || match unpaid.begin_charge(&limit, &subject) {
            Some(UnpaidAction::Charge(charging)) => Some(charging),
            Some(UnpaidAction::Wait(_)) | None => None,
        };
        let units =
            || unpaid.with(|table| table.get(&counter_key(&limit, &subject)).map(|it| it.units));
        unpaid.add(&limit, &subject, 5, Timestamp::from_millis(1));
        let replaced = charge().unwrap();
        assert_eq!(replaced.cost().get(), 5);
        unpaid.with(HashMap::clear);
        unpaid.add(&limit, &subject, 7, Timestamp::from_millis(2));
        let charging = charge().unwrap();
        assert_eq!((replaced.cost(), charging.cost().get()), (Cost::PEEK, 7));
        replaced.end(5);
        assert_eq!(units(), Some(7));
        assert!(charge().is_none(), "the later cost is still being charged");
        unpaid.add(&limit, &subject, 1, Timestamp::from_millis(3));
        charging.end(6);
        assert_eq!(units(), Some(2));
        charge().unwrap().end(2);
        assert!(unpaid.is_empty());
    }
}
