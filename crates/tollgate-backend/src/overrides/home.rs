//! Where the overrides of nodes lie: a shard in Redis, or a server of memcached.

use std::time::Duration;

use tollgate::core::{StoreError, Subject};
use tollgate_memcached::Memcached;
use tollgate_redis::{Document, Replaced};

use crate::backend::Backend;
use crate::fleet_shard::FleetShard;
use crate::side::Side;

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
            Backend::Memory(_) => None,
            Backend::Redis(fleet) => Some(Self::Redis(fleet.shards().home_of(&Subject::default()))),
            Backend::Memcached(fleet) => {
                Some(Self::Memcached(&fleet.servers().homes().home_of(&Subject::default()).store))
            }
            Backend::Rollout(moving) => {
                Self::of_side(moving.to()).or_else(|| Self::of_side(moving.from()))
            }
            Backend::Shadow(compared) => Self::of_side(compared.store()),
        }
    }

    fn of_side(side: &'s Side) -> Option<Self> {
        match side {
            Side::Memory(_) => None,
            Side::Redis(fleet) => Some(Self::Redis(fleet.shards().home_of(&Subject::default()))),
            Side::Memcached(fleet) => {
                Some(Self::Memcached(&fleet.servers().homes().home_of(&Subject::default()).store))
            }
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
            Self::Memcached(server) => {
                let tollgate_memcached::Document { version, bytes } = server.document(NAME).await?;
                Ok(Document { version, bytes })
            }
        }
    }

    /// Puts `document` in the place of the one of version `before`, for `lasting`.
    pub(super) async fn replace(
        self,
        before: &[u8],
        document: Document,
        lasting: Duration,
    ) -> Result<Replaced, StoreError> {
        match self {
            Self::Redis(shard) => shard.replace_document(NAME, before, &document, lasting).await,
            Self::Memcached(server) => {
                let Document { version, bytes } = document;
                let document = tollgate_memcached::Document { version, bytes };
                match server.replace_document(NAME, before, &document, lasting).await? {
                    tollgate_memcached::Replaced::Done => Ok(Replaced::Done),
                    tollgate_memcached::Replaced::Stale => Ok(Replaced::Stale),
                }
            }
        }
    }
}
