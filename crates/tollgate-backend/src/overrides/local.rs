//! Changes of overrides that only this node has, because the store did not answer.

use std::sync::Arc;

use tollgate::model::Timestamp;
use tollgate::overrides::{
    Override, OverrideChange, OverrideScope, OverrideStoreError, OverrideTable,
};

/// The most changes that a node keeps until the node can write the changes to the store.
pub const MAX_LOCAL_OVERRIDES: usize = 100;

/// The override table that was last read from the store, and the changes that are not in the store
/// yet.
#[derive(Debug, Default)]
pub(super) struct LocalOverrides {
    stored: Arc<OverrideTable>,
    /// The changes that are not in the store yet, at most one for each target.
    changes: Vec<LocalChange>,
}

#[derive(Debug)]
struct LocalChange {
    change: OverrideChange,
    /// The override that the same target had in the store when the change was made. `None` if it
    /// had no override.
    before: Option<Arc<Override>>,
}

impl LocalOverrides {
    /// Returns the table that was last read from the store.
    pub(super) fn stored(&self) -> Arc<OverrideTable> {
        Arc::clone(&self.stored)
    }

    /// Replaces the table that was last read from the store, and keeps the changes.
    pub(super) fn read(&mut self, stored: Arc<OverrideTable>) {
        self.stored = stored;
    }

    /// Replaces the table that was last read from the store by `stored`, which contains all
    /// changes, and removes the changes.
    pub(super) fn write(&mut self, stored: Arc<OverrideTable>) {
        *self = Self { stored, changes: Vec::new() };
    }

    /// Returns the targets of the changes.
    pub(super) fn targets(&self) -> Vec<OverrideScope> {
        self.changes.iter().map(|local| local.change.target().clone()).collect()
    }

    /// Returns the table in force: the table of the store with the changes applied. A change is
    /// left out if the override of the same target in the store differs from the override that was
    /// there when the change was made, or if the change has expired.
    pub(super) fn in_force(&self, now: Timestamp) -> Arc<OverrideTable> {
        self.changes.iter().fold(self.stored(), |table, LocalChange { change, before }| {
            let target = change.target();
            let before = before.as_ref().filter(|one| now < one.expires_at);
            let is_current = self.stored.get(target, now) == before;
            let lasts = match change {
                OverrideChange::Set(one) => now < one.expires_at,
                OverrideChange::Remove(_) => true,
            };
            match table.changed(change, now) {
                Ok(changed) if is_current && lasts => Arc::new(changed),
                _ => table,
            }
        })
    }

    /// Adds a change, and returns the table in force.
    ///
    /// # Errors
    /// [`OverrideStoreError`] if the change is impossible, or if there are already
    /// [`MAX_LOCAL_OVERRIDES`] changes.
    pub(super) fn add(
        &mut self,
        change: &OverrideChange,
        now: Timestamp,
    ) -> Result<Arc<OverrideTable>, OverrideStoreError> {
        self.in_force(now).changed(change, now)?;
        let target = change.target();
        let known = self.changes.iter().position(|local| local.change.target() == target);
        if known.is_none() && self.changes.len() == MAX_LOCAL_OVERRIDES {
            return Err(OverrideStoreError::LocalFull { changes: MAX_LOCAL_OVERRIDES });
        }
        if let Some(known) = known {
            self.changes.remove(known);
        }
        let before = self.stored.get(target, now).cloned();
        // No change is needed to remove an override that the store never had.
        if before.is_some() || matches!(change, OverrideChange::Set(_)) {
            self.changes.push(LocalChange { change: change.clone(), before });
        }
        Ok(self.in_force(now))
    }
}
