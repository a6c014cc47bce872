//! The store of the documents that nodes share: a shard in Redis, or a memcached server.

use std::time::Duration;

use tollgate::model::{CasOutcome, SharedBlob, StoreError, Subject};
use tollgate_memcached::Memcached;

use crate::backend::Backend;
use crate::backend_shard::BackendShard;
use crate::base_store::BaseStore;

/// The store of the documents.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlobStore<'s> {
    Redis(&'s BackendShard),
    Memcached(&'s Memcached),
}

impl<'s> BlobStore<'s> {
    /// Returns the documents' store within `store`. The hash of the empty subject selects it, so it
    /// is the same on every node. With two stores, it is in the one that remains after the move, if
    /// nodes share that store.
    pub(crate) fn of(store: &'s Backend) -> Option<Self> {
        match store {
            Backend::Rollout(moving) => {
                Self::at(moving.to().base_store()).or_else(|| Self::at(moving.from().base_store()))
            }
            Backend::Shadow(compared) => Self::at(compared.store().base_store()),
            Backend::Memory(_) | Backend::Redis(_) | Backend::Memcached(_) => {
                store.base_stores().into_iter().find_map(|(_, leaf)| Self::at(leaf))
            }
        }
    }

    fn at(leaf: BaseStore<'s>) -> Option<Self> {
        let nobody = Subject::default();
        match leaf {
            BaseStore::Memory(_) => None,
            BaseStore::Redis(fleet) => Some(Self::Redis(fleet.shards().shard_for(&nobody))),
            BaseStore::Memcached(fleet) => Some(Self::Memcached(fleet.shard_for(&nobody))),
        }
    }

    /// Returns the version of the document called `name`; empty if there is none.
    pub(crate) async fn version(self, name: &str) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Redis(shard) => shard.shared_blob_version(name).await,
            // An item can only be read as a whole.
            Self::Memcached(server) => Ok(server.shared_blob(name).await?.version),
        }
    }

    /// Returns the document called `name`, or an empty one if there is none.
    pub(crate) async fn shared_blob(self, name: &str) -> Result<SharedBlob, StoreError> {
        match self {
            Self::Redis(shard) => shard.shared_blob(name).await,
            Self::Memcached(server) => Ok(server.shared_blob(name).await?),
        }
    }

    /// Replaces the document called `name` of version `before` by `document`, which expires after
    /// `lasting`.
    pub(crate) async fn replace(
        self,
        name: &str,
        before: &[u8],
        document: &SharedBlob,
        lasting: Duration,
    ) -> Result<CasOutcome, StoreError> {
        match self {
            Self::Redis(shard) => shard.replace_shared_blob(name, before, document, lasting).await,
            Self::Memcached(server) => {
                Ok(server.replace_shared_blob(name, before, document, lasting).await?)
            }
        }
    }
}
