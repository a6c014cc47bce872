//! Where the overrides of nodes lie: a shard in Redis, or a server of memcached.

use std::time::Duration;

use tollgate::core::{Document, Replaced, StoreError, Subject};
use tollgate_memcached::Memcached;

use crate::backend::Backend;
use crate::fleet_shard::FleetShard;
use crate::leaf::Leaf;

/// What the document is called that holds them.
const NAME: &str = "overrides";

/// Who keeps the document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Home<'s> {
    Redis(&'s FleetShard),
    Memcached(&'s Memcached),
}

impl<'s> Home<'s> {
    /// The one of `store`: a hash of nobody chooses it, so that it is the same on every node. Of two
    /// stores it is the one that stays, if that shares anything.
    pub(super) fn of(store: &'s Backend) -> Option<Self> {
        match store {
            Backend::Rollout(moving) => {
                Self::at(moving.to().leaf()).or_else(|| Self::at(moving.from().leaf()))
            }
            Backend::Shadow(compared) => Self::at(compared.store().leaf()),
            Backend::Memory(_) | Backend::Redis(_) | Backend::Memcached(_) => {
                store.leaves().into_iter().find_map(|(_, leaf)| Self::at(leaf))
            }
        }
    }

    fn at(leaf: Leaf<'s>) -> Option<Self> {
        let nobody = Subject::default();
        match leaf {
            Leaf::Memory(_) => None,
            Leaf::Redis(fleet) => Some(Self::Redis(fleet.shards().home_of(&nobody))),
            Leaf::Memcached(fleet) => Some(Self::Memcached(fleet.home_of(&nobody))),
        }
    }

    /// The document's version; empty where there is none.
    pub(super) async fn version(self) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Redis(shard) => shard.document_version(NAME).await,
            // An item is told whole or not at all.
            Self::Memcached(server) => Ok(server.document(NAME).await?.version),
        }
    }

    /// The document, an empty one where there is none.
    pub(super) async fn document(self) -> Result<Document, StoreError> {
        match self {
            Self::Redis(shard) => shard.document(NAME).await,
            Self::Memcached(server) => Ok(server.document(NAME).await?),
        }
    }

    /// Puts `document` in the place of the one of version `before`, for `lasting`.
    pub(super) async fn replace(
        self,
        before: &[u8],
        document: &Document,
        lasting: Duration,
    ) -> Result<Replaced, StoreError> {
        match self {
            Self::Redis(shard) => shard.replace_document(NAME, before, document, lasting).await,
            Self::Memcached(server) => {
                Ok(server.replace_document(NAME, before, document, lasting).await?)
            }
        }
    }
}
