//! Who keeps the overrides that a node holds.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollgate_core::Timestamp;

use super::Override;
use super::change::{OverrideChange, OverrideStoreError};
use super::index::Overrides;
use super::table::OverrideTable;

/// Keeps overrides, and makes them known to every node that shares them.
pub trait OverrideStore: fmt::Debug + Send + Sync {
    /// Makes `change`. Once it has answered the change is in force on this node, and kept where
    /// other nodes find it.
    fn change(
        &self,
        now: Timestamp,
        change: OverrideChange,
    ) -> Pin<Box<dyn Future<Output = Result<ChangeResult, OverrideStoreError>> + Send + '_>>;

    /// The table that is in force on this node.
    fn table(&self) -> Arc<OverrideTable>;

    /// Where overrides are kept, and how that stands.
    fn storage(&self) -> OverrideStorage;
}

/// What a change made.
#[derive(Clone, Debug)]
pub struct ChangeResult {
    /// What was in force of the same target.
    pub before: Option<Arc<Override>>,
    /// What is in force now.
    pub table: Arc<OverrideTable>,
}

/// Where overrides are kept, and how that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideStorage {
    /// In this process: they end with it, and other nodes know nothing of them.
    InProcess,
    /// In the store, where every node finds them.
    InStore {
        /// Why they could not be read the last time, if so; the last ones that were read stay in
        /// force.
        failure: Option<String>,
    },
}

/// In this process.
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
                Ok((ChangeResult { before, table: Arc::clone(&table) }, table))
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
