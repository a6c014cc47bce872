//! Heartbeats by which each node publishes its shard map. The nodes write the heartbeats to the
//! shards.

use tollgate_core::algo::Concurrency;
use tollgate_core::{
    Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, LimitError, Millis,
    Operation, Store, StoreError, Subject, Timestamp, Value,
};

use crate::sharded::MapVersion;
use tollgate::hash_key::HashKey;

/// The time after which a heartbeat expires. A node without a newer heartbeat no longer counts as
/// using any map.
pub const HEARTBEAT_TTL: Millis = Millis::from_secs(10);

/// The maximum number of nodes that are counted.
const MAX_NODES: u64 = 10_000;

/// A heartbeat that publishes the node's shard map and counts the nodes with each map.
///
/// A heartbeat is a permit on the map's version, stored in the shards like any other permit. Each
/// [`beat`](Self::beat) renews the permit, and the permit expires if the node dies.
#[derive(Debug)]
pub struct Heartbeat {
    limit: Limit,
    key: HashKey,
    node: ChargeId,
}

/// The numbers of nodes that one shard counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatCounts {
    /// The number of nodes that use this node's map. This node is included.
    pub own_map: u64,
    /// The number of nodes that use the map `other`, an argument of [`Heartbeat::beat`].
    pub other_map: u64,
    /// The number of nodes that use any map.
    pub all: u64,
}

impl Heartbeat {
    /// Creates the heartbeat of the node with the id `node`. No other node may have the same id.
    ///
    /// # Errors
    /// None in practice: the limit of the permits is well formed.
    pub fn new(key: HashKey, node: ChargeId) -> Result<Self, LimitError> {
        let leases = Algorithm::Concurrency(Concurrency::new(MAX_NODES, HEARTBEAT_TTL)?);
        Ok(Self { limit: Limit::new("tollgate.map", leases)?, key, node })
    }

    /// Publishes at `shard` that this node uses the map `own`, and counts the nodes that use `own`,
    /// `other` and any map. Call this function again well within [`HEARTBEAT_TTL`].
    ///
    /// The counts are consistent even if another node sends its heartbeat at the same time: every
    /// node in `all` is also in the count of its map, so it is not mistaken for a node with a third
    /// map. The reason is that a node publishes its map before `all` counts the node, and this
    /// function counts the maps after `all`.
    ///
    /// # Errors
    /// The error of the shard. The maps of the nodes are then unknown.
    pub async fn beat(
        &self,
        shard: &impl Store,
        now: Timestamp,
        own: MapVersion,
        other: MapVersion,
    ) -> Result<HeartbeatCounts, StoreError> {
        let charge = Operation::Charge { cost: Cost::ONE, id: self.node };
        // The operation is not a peek, because a replica could answer a peek without the heartbeats
        // that are already counted in `all`.
        let other_operation = match own == other {
            true => charge,
            false => Operation::Refund {
                cost: Cost::ONE,
                position: ChargePosition::default(),
                id: self.node,
                deduplication: Deduplication::Unneeded,
            },
        };
        let (own, other, any) =
            (self.subject(&own.to_string()), self.subject(&other.to_string()), self.subject("any"));
        // Each subject has its own call, because the subjects may belong to different shards, and a
        // full shard must not block the other shards.
        let count = async |subject, operation| {
            let readings =
                shard.apply(now, &[Charge { limit: &self.limit, subject, operation }]).await?;
            Ok::<_, StoreError>(readings.first().map_or(0, |reading| reading.used))
        };
        count(&own, charge).await?;
        let all = count(&any, charge).await?;
        let own_map = count(&own, charge).await?;
        let other_map = count(&other, other_operation).await?;
        Ok(HeartbeatCounts { own_map, other_map, all })
    }

    fn subject(&self, map: &str) -> Subject {
        Subject::new([("map", Value::Clear(map.as_bytes()))], &self.key)
    }
}
