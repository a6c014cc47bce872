//! All overrides that are in force, in one version.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tollgate_core::Timestamp;

use super::change::{OverrideChange, OverrideStoreError};
use super::{MAX_OVERRIDES, Override, OverrideScope};

/// All overrides in one version. It is never changed: a change makes the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideTable {
    version: TableVersion,
    overrides: Vec<Arc<Override>>,
}

/// Which table: a count of changes, and a number that was drawn at random, by which two are told
/// apart that followed the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableVersion {
    /// How many changes led to it; zero where nobody has made one.
    pub changes: u64,
    /// Drawn at random by who made the last one.
    pub drawn: u64,
}

impl OverrideTable {
    /// These overrides in this version; `None` if there are more than [`MAX_OVERRIDES`].
    #[must_use]
    pub fn new(version: TableVersion, overrides: Vec<Arc<Override>>) -> Option<Self> {
        (overrides.len() <= MAX_OVERRIDES).then_some(Self { version, overrides })
    }

    /// Its version.
    #[must_use]
    pub const fn version(&self) -> TableVersion {
        self.version
    }

    /// All of them, the oldest first; also those that are over since the last change.
    #[must_use]
    pub fn overrides(&self) -> &[Arc<Override>] {
        &self.overrides
    }

    /// That of `target`, unless it is over at `now`.
    #[must_use]
    pub fn get(&self, target: &OverrideScope, now: Timestamp) -> Option<&Arc<Override>> {
        self.overrides.iter().find(|one| one.target == *target && now < one.expires_at)
    }

    /// The table that follows by `change` at `now`, without what is over then.
    ///
    /// # Errors
    /// [`OverrideStoreError::Full`] if there would be more than [`MAX_OVERRIDES`], [`OverrideStoreError::Missing`] if
    /// what is to be removed is not there.
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

    /// When the last of them is over.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.overrides.iter().map(|one| one.expires_at).max().unwrap_or_default()
    }
}
