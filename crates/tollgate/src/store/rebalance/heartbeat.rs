//! Which maps the nodes of a fleet use, asked of the shards themselves.

use tollgate_core::algo::Concurrency;
use tollgate_core::{
    Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, LimitError, Millis,
    Operation, Store, StoreError, Subject, Timestamp, Value,
};

use crate::hash_key::HashKey;
use crate::store::sharded::MapVersion;

/// A node that has not been heard of for so long uses no map any more.
pub const HEARTBEAT_TTL: Millis = Millis::from_secs(10);

/// The most nodes that are told apart.
const MAX_NODES: u64 = 10_000;

/// Has every node say which map it uses, and counts those that say so.
///
/// A node's word is a lease on the map's version, kept in the shards as any lease is: it is renewed
/// by being asked again, and ends by itself when the node does.
#[derive(Debug)]
pub struct Heartbeat {
    limit: Limit,
    key: HashKey,
    node: ChargeId,
}

/// Who was heard of at a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatCounts {
    /// Nodes that use this node's map, itself among them.
    pub alike: u64,
    /// Nodes that use the map that was asked about.
    pub asked: u64,
    /// Nodes that use any map.
    pub all: u64,
}

impl Heartbeat {
    /// The word of `node`, an id of its own.
    ///
    /// # Errors
    /// None that can happen: the limit that the leases are on is well formed.
    pub fn new(key: HashKey, node: ChargeId) -> Result<Self, LimitError> {
        let leases = Algorithm::Concurrency(Concurrency::new(MAX_NODES, HEARTBEAT_TTL)?);
        Ok(Self { limit: Limit::new("tollgate.map", leases)?, key, node })
    }

    /// Says at `shard` that this node uses the map `own`, and counts who uses it, who uses `other`,
    /// and who uses any. To be repeated well within [`HEARTBEAT_TTL`].
    ///
    /// Nodes that attend at the same moment are not taken for nodes of a third map: whoever is
    /// counted in `all` had said before which map it uses, and that is counted after.
    ///
    /// # Errors
    /// The shard's: then nothing is known of who uses what.
    pub async fn beat(
        &self,
        shard: &impl Store,
        now: Timestamp,
        own: MapVersion,
        other: MapVersion,
    ) -> Result<HeartbeatCounts, StoreError> {
        let take = Operation::Charge { cost: Cost::ONE, id: self.node };
        // A look may be answered by a replica, which has not heard yet what was counted in `all`.
        let asked_about = match own == other {
            true => take,
            false => Operation::Refund {
                cost: Cost::ONE,
                position: ChargePosition::default(),
                id: self.node,
                deduplication: Deduplication::Unneeded,
            },
        };
        let (own, other, any) =
            (self.subject(&own.to_string()), self.subject(&other.to_string()), self.subject("any"));
        // Each by itself: their subjects need not live together, and one full must not stop all.
        let count = async |subject, operation| {
            let readings =
                shard.apply(now, &[Charge { limit: &self.limit, subject, operation }]).await?;
            Ok::<_, StoreError>(readings.first().map_or(0, |reading| reading.used))
        };
        count(&own, take).await?;
        let all = count(&any, take).await?;
        let alike = count(&own, take).await?;
        let asked = count(&other, asked_about).await?;
        Ok(HeartbeatCounts { alike, asked, all })
    }

    fn subject(&self, map: &str) -> Subject {
        Subject::new([("map", Value::Clear(map.as_bytes()))], &self.key)
    }
}
