//! Who arrived at a store with what it used at another one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{Cells, Charge, Place, Timestamp};

use super::recent::{Recent, Worth};

/// How many limits and subjects are remembered to have arrived, unless another number is set.
pub const DEFAULT_ARRIVALS: usize = 65_536;

/// How long bringing a call's cells along may take, unless another time is set.
pub const DEFAULT_CARRY: Duration = Duration::from_millis(15);

/// Brings what subjects used along to the store where they live now, before their first decision
/// there.
#[derive(Debug)]
pub(super) struct Arrivals {
    recent: Recent<Arrival>,
    within: Duration,
    carried: AtomicU64,
    failed: AtomicU64,
    /// Rises whenever something is forgotten.
    turn: AtomicU64,
}

/// At what is numbered by the epoch: a store, and how it came that it is the one.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    epoch: u64,
    at: Timestamp,
}

impl Worth for Arrival {
    /// Who came last will come again soonest.
    fn worth(&self, _now: Timestamp) -> u64 {
        self.at.as_millis()
    }
}

impl Arrivals {
    pub(super) fn new(entries: usize) -> Self {
        Self {
            recent: Recent::new(entries),
            within: DEFAULT_CARRY,
            carried: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            turn: AtomicU64::new(0),
        }
    }

    pub(super) fn with_time(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Cells that were brought along.
    pub(super) fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// Calls whose cells could not be, so that their next decision tries again.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Has the next decision on `charges` bring their cells along once more.
    pub(super) fn forget(&self, charges: &[Charge<'_>]) {
        self.turn.fetch_add(1, Ordering::AcqRel);
        charges.iter().for_each(|charge| self.recent.forget_if(self.recent.key(charge), |_| true));
    }

    /// Joins into `to` what `from` holds of those of `charges` that have not arrived in `epoch`.
    pub(super) async fn bring(
        &self,
        now: Timestamp,
        epoch: u64,
        (from, to): (&impl Cells, &impl Cells),
        charges: &[Charge<'_>],
    ) {
        let mut places = Vec::new();
        let mut keys = Vec::new();
        for charge in charges {
            let key = self.recent.key(charge);
            if self.recent.get(key).is_none_or(|arrival| arrival.epoch != epoch) {
                places.push(Place { limit: charge.limit, subject: charge.subject });
                keys.push(key);
            }
        }
        if places.is_empty() {
            return;
        }
        let turn = self.turn.load(Ordering::Acquire);
        let carry = async {
            let cells = from.cells(now, &places).await?;
            let held = places.into_iter().zip(cells);
            let held: Vec<_> = held.filter_map(|(place, cell)| Some((place, cell?))).collect();
            if !held.is_empty() {
                to.join(now, &held).await?;
            }
            Ok::<_, tollgate_core::StoreError>(held.len() as u64)
        };
        match tokio::time::timeout(self.within, carry).await {
            Ok(Ok(count)) => {
                self.carried.fetch_add(count, Ordering::Relaxed);
                // What was read may be older than what is to be brought once more.
                if turn != self.turn.load(Ordering::Acquire) {
                    return;
                }
                let arrival = Arrival { epoch, at: now };
                keys.into_iter().for_each(|key| self.recent.put(key, arrival, now));
            }
            Ok(Err(_)) | Err(_) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
