//! One repair: what is to be joined, in batches, and for how long at the most.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tollgate_core::decide::join;
use tollgate_core::{Cell, Cost, Place, StoreError, Timestamp, assess};

use super::memory::Known;
use crate::store::atomic::HomesOfHistories;
use crate::store::join::join_all;

/// The most places of one question to the store: it serves nobody else while it answers.
pub(super) const BATCH: usize = 64;

/// What is left to be joined with a history.
#[derive(Debug)]
pub(super) struct Pass {
    /// The newest last, which is joined first.
    left: Vec<Known>,
    /// When others began to wait for it; none where the store cannot be reached at all.
    since: Option<Instant>,
}

/// What was repaired.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) repairs: AtomicU64,
    pub(super) places: AtomicU64,
    pub(super) units: AtomicU64,
    pub(super) abandoned: AtomicU64,
}

impl Pass {
    pub(super) const fn new(known: Vec<Known>) -> Self {
        Self { left: known, since: None }
    }

    /// Whether something of it is left whose home is of `history` still.
    pub(super) fn is_of(&self, homes: &impl HomesOfHistories, history: u64) -> bool {
        self.left.iter().any(|known| known.is_of(homes, history))
    }

    /// Joins what is left with `history` at its homes, for `time` at most since they could first
    /// be reached; then what is left is given up. What is joined once is not joined again if this
    /// is dropped, and what is of another history by now is for the repair of that one.
    ///
    /// # Errors
    /// Why a home did not take it, while there is time left to try again.
    pub(super) async fn go_on(
        &mut self,
        homes: &impl HomesOfHistories,
        history: u64,
        now: Timestamp,
        time: Duration,
        counters: &Counters,
    ) -> Result<(), StoreError> {
        self.left.retain(|known| known.is_of(homes, history));
        while !self.left.is_empty() {
            let until = *self.since.get_or_insert_with(Instant::now) + time;
            let rest = self.left.len().saturating_sub(BATCH);
            let batch = make_whole(homes, now, &self.left[rest..], counters);
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left, batch).await {
                Ok(Ok(())) => self.left.truncate(rest),
                Ok(Err(StoreError::Unavailable)) => {
                    self.since = None;
                    return Err(StoreError::Unavailable);
                }
                Ok(Err(error)) if Instant::now() < until => return Err(error),
                Ok(Err(_)) | Err(_) => {
                    counters.abandoned.fetch_add(self.left.len() as u64, Ordering::Relaxed);
                    self.left.clear();
                }
            }
        }
        Ok(())
    }
}

/// Joins what `homes` lack of what is known, all at the same time, and counts it.
pub(super) async fn make_whole(
    homes: &impl HomesOfHistories,
    now: Timestamp,
    known: &[Known],
    counters: &Counters,
) -> Result<(), StoreError> {
    let mut by_home = BTreeMap::<usize, Vec<&Known>>::new();
    for known in known {
        by_home.entry(homes.home(&known.subject)).or_default().push(known);
    }
    let each = by_home.into_iter();
    let whole = each.map(|(home, known)| make_whole_at(homes, home, now, known, counters));
    join_all(whole.collect()).await.into_iter().collect()
}

async fn make_whole_at(
    homes: &impl HomesOfHistories,
    home: usize,
    now: Timestamp,
    known: Vec<&Known>,
    counters: &Counters,
) -> Result<(), StoreError> {
    let places: Vec<_> = known.iter().map(|known| known.place()).collect();
    let kept = homes.cells_at(home, now, &places).await?;
    let (mut lacking, mut units) = (Vec::new(), 0_u64);
    for ((known, place), kept) in known.into_iter().zip(places).zip(kept) {
        let joined = join(kept.clone(), known.cell.clone(), place.limit, now);
        if joined == kept {
            continue;
        }
        let used = |cell: &Option<Cell>| assess(cell.as_ref(), place.limit, Cost::PEEK, now).used;
        units = units.saturating_add(used(&joined).saturating_sub(used(&kept)));
        lacking.push((place, known.cell.clone()));
    }
    if lacking.is_empty() {
        return Ok(());
    }
    homes.join_at(home, now, &lacking).await?;
    counters.places.fetch_add(lacking.len() as u64, Ordering::Relaxed);
    counters.units.fetch_add(units, Ordering::Relaxed);
    Ok(())
}

impl Known {
    /// Whether its home is of `history`.
    pub(super) fn is_of(&self, homes: &impl HomesOfHistories, history: u64) -> bool {
        homes.history_at(homes.home(&self.subject)) == history
    }

    fn place(&self) -> Place<'_> {
        Place { limit: &self.limit, subject: &self.subject }
    }
}
