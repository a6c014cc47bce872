//! All overrides that are in force, as one version of a table.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tollgate_core::Timestamp;

use super::change::{OverrideChange, OverrideStoreError};
use super::{MAX_OVERRIDES, Override, OverrideScope};

/// One version of the table of all overrides. A table is immutable: a change creates the next
/// version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideTable {
    version: TableVersion,
    overrides: Vec<Arc<Override>>,
}

/// The version of a table: the number of changes, and a random number. The random number differs
/// between two tables that were made from the same predecessor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableVersion {
    /// The number of changes that led to the table; 0 if there was no change.
    pub changes: u64,
    /// A random number that the node drew when it made the last change.
    pub drawn: u64,
}

impl OverrideTable {
    /// Creates the table of `overrides` with the given version. Returns `None` if there are more
    /// than [`MAX_OVERRIDES`].
    #[must_use]
    pub fn new(version: TableVersion, overrides: Vec<Arc<Override>>) -> Option<Self> {
        (overrides.len() <= MAX_OVERRIDES).then_some(Self { version, overrides })
    }

    /// Returns the version of the table.
    #[must_use]
    pub const fn version(&self) -> TableVersion {
        self.version
    }

    /// Returns all overrides, the oldest first. The list may contain overrides that have expired
    /// since the last change.
    #[must_use]
    pub fn overrides(&self) -> &[Arc<Override>] {
        &self.overrides
    }

    /// Returns the override of `target`. Returns `None` if the table has no such override, or if
    /// the override has expired at `now`.
    #[must_use]
    pub fn get(&self, target: &OverrideScope, now: Timestamp) -> Option<&Arc<Override>> {
        self.overrides.iter().find(|one| one.target == *target && now < one.expires_at)
    }

    /// Returns the next table: this table after `change` at `now`, without overrides that have
    /// expired at `now`.
    ///
    /// # Errors
    /// [`OverrideStoreError::Full`] if there would be more than [`MAX_OVERRIDES`],
    /// [`OverrideStoreError::Missing`] if the override to remove does not exist.
    pub fn changed(
        &self,
        change: &OverrideChange,
        now: Timestamp,
    ) -> Result<Self, OverrideStoreError> {
        let target = change.target();
        let lasting = self.overrides.iter().filter(|one| now < one.expires_at);
        let mut overrides: Vec<_> = lasting.filter(|one| one.target != *target).cloned().collect();
        match change {
            OverrideChange::Set(one) => overrides.push(Arc::new(one.clone())),
            OverrideChange::Remove(_) if self.get(target, now).is_none() => {
                return Err(OverrideStoreError::Missing);
            }
            OverrideChange::Remove(_) => {}
        }
        let drawn = RandomState::new().hash_one(self.version.drawn);
        let version = TableVersion { changes: self.version.changes.saturating_add(1), drawn };
        Self::new(version, overrides).ok_or(OverrideStoreError::Full)
    }

    /// Returns the time at which the last override of the table expires. For an empty table, this
    /// is the epoch.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.overrides.iter().map(|one| one.expires_at).max().unwrap_or_default()
    }
}
