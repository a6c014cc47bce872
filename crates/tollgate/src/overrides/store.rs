//! Stores of overrides.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollgate_core::{StoreError, Timestamp};

use super::change::{OverrideChange, OverrideStoreError};
use super::index::Overrides;
use super::table::OverrideTable;
use super::{Override, OverrideScope};

/// Stores overrides and distributes them to every node that shares them.
pub trait OverrideStore: fmt::Debug + Send + Sync {
    /// Applies `change`. When the future returns `Ok`, the change is in force on this node, and is
    /// stored where the other nodes read it unless [`ChangeResult::pending`] says otherwise.
    fn change(
        &self,
        now: Timestamp,
        change: OverrideChange,
    ) -> Pin<Box<dyn Future<Output = Result<ChangeResult, OverrideStoreError>> + Send + '_>>;

    /// Returns the table that is in force on this node.
    fn table(&self) -> Arc<OverrideTable>;

    /// Returns where overrides are stored, and whether the last read succeeded.
    fn storage(&self) -> OverrideStorage;
}

/// The result of a change.
#[derive(Clone, Debug)]
pub struct ChangeResult {
    /// The override of the same target that was in force before the change.
    pub before: Option<Arc<Override>>,
    /// The table that is in force now.
    pub table: Arc<OverrideTable>,
    /// Why the store does not have the change yet, if only this node has it. The node stores it
    /// when the store answers again.
    pub pending: Option<StoreError>,
}

/// Where overrides are stored, and whether the last read succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideStorage {
    /// In this process: they are lost when it ends, and other nodes do not receive them.
    InProcess,
    /// In the store, where every node reads them.
    InStore {
        /// Why the last read failed, if it did. The overrides of the last successful read stay in
        /// force.
        failure: Option<String>,
        /// The targets of the changes that are on this node alone, because the store did not answer.
        pending: Vec<OverrideScope>,
    },
}

/// Stores overrides in this process.
impl OverrideStore for Arc<Overrides> {
    fn change(
        &self,
        now: Timestamp,
        change: OverrideChange,
    ) -> Pin<Box<dyn Future<Output = Result<ChangeResult, OverrideStoreError>> + Send + '_>> {
        Box::pin(async move {
            self.update(|table| {
                let before = table.get(change.target(), now).cloned();
                let table = Arc::new(table.changed(&change, now)?);
                let result = ChangeResult { before, table: Arc::clone(&table), pending: None };
                Ok((result, table))
            })
        })
    }

    fn table(&self) -> Arc<OverrideTable> {
        Overrides::table(self)
    }

    fn storage(&self) -> OverrideStorage {
        OverrideStorage::InProcess
    }
}
