//! Who keeps the overrides that a node holds.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollgate_core::Timestamp;

use super::Override;
use super::change::{Change, KeepError};
use super::index::Overrides;
use super::table::Table;

/// Keeps overrides, and makes them known to every node that shares them.
pub trait Keep: fmt::Debug + Send + Sync {
    /// Makes `change`. Once it has answered the change is in force on this node, and kept where
    /// other nodes find it.
    fn change(
        &self,
        now: Timestamp,
        change: Change,
    ) -> Pin<Box<dyn Future<Output = Result<Changed, KeepError>> + Send + '_>>;

    /// The table that is in force on this node.
    fn table(&self) -> Arc<Table>;

    /// Where overrides are kept, and how that stands.
    fn kept(&self) -> Kept;
}

/// What a change made.
#[derive(Clone, Debug)]
pub struct Changed {
    /// What was in force of the same target.
    pub before: Option<Arc<Override>>,
    /// What is in force now.
    pub table: Arc<Table>,
}

/// Where overrides are kept, and how that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
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
impl Keep for Arc<Overrides> {
    fn change(
        &self,
        now: Timestamp,
        change: Change,
    ) -> Pin<Box<dyn Future<Output = Result<Changed, KeepError>> + Send + '_>> {
        Box::pin(async move {
            self.update(|table| {
                let before = table.get(change.target(), now).cloned();
                let table = Arc::new(table.changed(&change, now)?);
                Ok((Changed { before, table: Arc::clone(&table) }, table))
            })
        })
    }

    fn table(&self) -> Arc<Table> {
        Overrides::table(self)
    }

    fn kept(&self) -> Kept {
        Kept::InProcess
    }
}
