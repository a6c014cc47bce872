//! The interface of the stores that keep overrides.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollgate_core::{StoreError, Timestamp};

use super::change::{OverrideChange, OverrideStoreError};
use super::index::Overrides;
use super::table::OverrideTable;
use super::{Override, OverrideScope};

/// Stores overrides and distributes them to all nodes that use the same store.
pub trait OverrideStore: fmt::Debug + Send + Sync {
    /// Applies `change`. When the future returns `Ok`, the change is in force on this node. The
    /// change is also stored where the other nodes read it, unless [`ChangeResult::pending`] has an
    /// error.
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

/// The result of setting or removing an override.
#[derive(Clone, Debug)]
pub struct ChangeResult {
    /// The override of the same scope that was in force before the change; `None` if there was
    /// none.
    pub before: Option<Arc<Override>>,
    /// The table that is in force now.
    pub table: Arc<OverrideTable>,
    /// The reason why the store does not have the change yet; `None` if the store has the change.
    /// Until the store answers again and receives the change, only this node has the change.
    pub pending: Option<StoreError>,
}

/// Where overrides are stored, and whether the last read succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideStorage {
    /// The overrides are stored in this process. They are lost when the process ends, and other
    /// nodes do not receive them.
    InProcess,
    /// The overrides are stored in a store that the nodes share, where every node reads them.
    InStore {
        /// The reason why the last read failed, if it failed. The overrides of the last successful
        /// read stay in force.
        failure: Option<String>,
        /// The scopes of the changes that only this node has, because the store did not answer.
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
