//! One repair: what is to be joined, in batches, and for how long at the most.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tollgate_core::decide::join;
use tollgate_core::{Cell, Cells, Cost, Place, StoreError, Timestamp, assess};

use super::memory::Known;

/// The most places of one question to the store: it serves nobody else while it answers.
pub(super) const BATCH: usize = 64;

/// What is left to be joined with a history.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) history: u64,
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
    pub(super) const fn new(history: u64, known: Vec<Known>) -> Self {
        Self { history, left: known, since: None }
    }

    /// Joins what is left with `store`, for `time` at most since it could first be reached; then
    /// what is left is given up. What is joined once is not joined again if this is dropped.
    ///
    /// # Errors
    /// Why the store did not take it, while there is time left to try again.
    pub(super) async fn go_on<S: Cells>(
        &mut self,
        store: &S,
        now: Timestamp,
        time: Duration,
        counters: &Counters,
    ) -> Result<(), StoreError> {
        while !self.left.is_empty() {
            let until = *self.since.get_or_insert_with(Instant::now) + time;
            let rest = self.left.len().saturating_sub(BATCH);
            let batch = make_whole(store, now, &self.left[rest..], counters);
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

/// Joins what `store` lacks of what is known, and counts it.
pub(super) async fn make_whole<S: Cells>(
    store: &S,
    now: Timestamp,
    known: &[Known],
    counters: &Counters,
) -> Result<(), StoreError> {
    let places: Vec<_> = known.iter().map(Known::place).collect();
    let kept = store.cells(now, &places).await?;
    let (mut lacking, mut units) = (Vec::new(), 0_u64);
    for ((known, place), kept) in known.iter().zip(places).zip(kept) {
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
    store.join(now, &lacking).await?;
    counters.places.fetch_add(lacking.len() as u64, Ordering::Relaxed);
    counters.units.fetch_add(units, Ordering::Relaxed);
    Ok(())
}

impl Known {
    fn place(&self) -> Place<'_> {
        Place { limit: &self.limit, subject: &self.subject }
    }
}
