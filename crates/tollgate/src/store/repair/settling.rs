//! Charges that wait until what is remembered of their history is in it.

use std::sync::atomic::Ordering;

use tollgate_core::{Charge, Millis, Readings, StoreError, Timestamp};

use super::pass::{Pass, make_whole};
use super::{LONGEST_OUTAGE, Repair};
use crate::store::atomic::HomesOfHistories;

impl<S> Repair<S> {
    /// Carries `charges` out at `home`, whose history is repaired before.
    pub(super) async fn carry_out_at(
        &self,
        homes: &impl HomesOfHistories,
        home: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        if charges.iter().all(|charge| charge.ask.only_reads()) {
            return homes.apply_at(home, now, charges).await;
        }
        let (mut history, mut answer) = self.charge_at(homes, home, now, charges).await;
        if matches!(answer, Err(StoreError::Unavailable)) && history != homes.history_at(home) {
            // It was held back: another history began while it waited to be sent.
            (history, answer) = Box::pin(self.charge_at(homes, home, now, charges)).await;
        }
        if answer.is_ok() && history != homes.history_at(home) {
            // An old history's last word: the repair of the new one may not have known of it.
            let known = self.memory.known_of(now, charges);
            // It is decided, whether it can be joined or not.
            let _ = Box::pin(make_whole(homes, now, &known, &self.counters)).await;
        }
        answer
    }

    /// Repairs the history of `home`, if it is held; answers which one it is.
    ///
    /// # Errors
    /// Why what is remembered was not taken. It will be tried again.
    pub(super) async fn settle_at(
        &self,
        homes: &impl HomesOfHistories,
        home: usize,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let history = homes.history_at(home);
        if !homes.holds_at(home) {
            return Ok(history);
        }
        // Boxed, as all that is rare: so that it makes no charge larger.
        Box::pin(self.repair_at(homes, home, now)).await
    }

    /// Charges, and remembers the answer; the history that the charges were meant for.
    async fn charge_at(
        &self,
        homes: &impl HomesOfHistories,
        home: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> (u64, Result<Readings, StoreError>) {
        // Where it fails, the store holds the charges back and says so.
        let settled = self.settle_at(homes, home, now).await.unwrap_or_default();
        let begun = self.memory.begin();
        let answer = homes.apply_at(home, now, charges).await;
        if let Ok(readings) = &answer {
            self.memory.remember(begun, now, charges, readings);
        }
        (settled, answer)
    }

    /// How old the oldest is of what a store may lack that nobody could ask during `outage`.
    fn age_max(&self, outage: Millis) -> Millis {
        Millis::new(self.remembered.get().saturating_add(outage.min(LONGEST_OUTAGE).get()))
    }

    async fn repair_at(
        &self,
        homes: &impl HomesOfHistories,
        home: usize,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let passes = &mut *self.passes.lock().await;
        // One that was replaced again before it was whole has nothing more to be told.
        passes.retain(|history, pass| pass.is_of(homes, *history));
        loop {
            let history = homes.history_at(home);
            if !homes.holds_at(home) {
                return Ok(history);
            }
            let pass = passes.entry(history).or_insert_with(|| {
                let mut known = self.memory.known(now, self.age_max(homes.outage_at(home)));
                known.retain(|known| known.is_of(homes, history));
                self.counters.repairs.fetch_add(u64::from(!known.is_empty()), Ordering::Relaxed);
                Pass::new(known)
            });
            pass.go_on(homes, history, now, self.time, &self.counters).await?;
            passes.remove(&history);
            homes.release(history);
        }
    }
}
