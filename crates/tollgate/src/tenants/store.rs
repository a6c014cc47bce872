//! The interface of the stores that keep tenants.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use tollgate_core::{StoreError, Timestamp};

use super::MAX_TENANTS;
use super::batch::TenantBatch;
use super::partition::PartitionError;

/// Stores tenants and distributes them to all nodes that use the same store.
pub trait TenantStore: fmt::Debug + Send + Sync {
    /// Applies `batch`. When the future returns `Ok`, the changes are in force on this node and
    /// stored where the other nodes read them.
    fn apply(
        &self,
        now: Timestamp,
        batch: TenantBatch,
    ) -> Pin<Box<dyn Future<Output = Result<TenantsChanged, TenantStoreError>> + Send + '_>>;

    /// Returns where tenants are stored, and whether the last read succeeded.
    fn storage(&self) -> TenantStorage;
}

/// The result of a change of tenants: the numbers of tenants before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantsChanged {
    /// The number of tenants before the change.
    pub before: usize,
    /// The number of tenants after the change.
    pub after: usize,
}

/// Where tenants are stored, and whether the last read succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TenantStorage {
    /// The tenants are stored in this process. They are lost when the process ends, and other nodes
    /// do not receive them.
    InProcess,
    /// The tenants are stored in a store that the nodes share, where every node reads them.
    InStore {
        /// Whether this node has read all tenants since it started.
        is_loaded: bool,
        /// The reason why the last read failed, if it failed. The tenants of the last successful
        /// read stay in force.
        failure: Option<String>,
    },
}

/// The reason why the changes of a batch were not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TenantStoreError {
    /// There would be more than [`MAX_TENANTS`] tenants.
    Full,
    /// A partition of the table cannot be read or written.
    Partition(PartitionError),
    /// Every attempt failed, because another node changed the tenants at the same time.
    Contended,
    /// The store failed. Of the `parts` partitions that the batch changes, at least `stored`
    /// partitions were stored.
    Store {
        /// The error of the store.
        error: StoreError,
        /// The number of partitions that were stored for certain.
        stored: usize,
        /// The number of partitions that the batch changes.
        parts: usize,
    },
}

impl fmt::Display for TenantStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "there would be more than {MAX_TENANTS} tenants: remove some"),
            Self::Partition(error) => error.fmt(f),
            Self::Contended => {
                f.write_str("other nodes change the same tenants: send the request again")
            }
            Self::Store { error, stored: 0, parts: 1 } => {
                write!(f, "{error}: it is unknown whether the tenant was changed; send it again")
            }
            Self::Store { error, stored, parts } => write!(
                f,
                "{error}: {stored} of {parts} parts of the import are stored; send all of it again"
            ),
        }
    }
}

impl std::error::Error for TenantStoreError {}
