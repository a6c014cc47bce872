//! Converts the key `shards` to the shards and their servers.

use std::num::NonZeroU32;

use super::at_most;
use super::topology::{NamedServers, topology};
use crate::decode::{Field, Named, Names};
use crate::raw;
use crate::report::Report;
use crate::settings::ShardSettings;

/// The largest number of shards. The number is bounded because every decision compares all shards
/// to find the one that has the counters.
const MAX_SHARDS: usize = 1_024;

/// The largest weight of a shard.
const MAX_WEIGHT: u32 = 1 << 20;

/// The shards of a store, with the transports to their servers.
pub(super) struct ResolvedShards {
    pub(super) shards: Vec<ShardSettings>,
    /// The servers of the shards, with their transports.
    pub(super) named_servers: NamedServers,
}

/// Returns the shards in file order, with the transports to their servers. Returns `None` after
/// reporting a mistake.
pub(super) fn shards(
    field: &Field<Names<raw::Shard>>,
    report: &mut Report<'_>,
) -> Option<ResolvedShards> {
    let named = listed(field, report)?;
    let mut named_servers = NamedServers::default();
    let shards: Vec<_> =
        named.iter().map(|named| shard(named, &mut named_servers, report)).collect();
    let shards = shards.into_iter().collect::<Option<_>>()?;
    Some(ResolvedShards { shards, named_servers })
}

/// Returns the shards of a shard map as the file lists them, or `None` after reporting a mistake,
/// for example that there are none.
pub(super) fn listed<'s>(
    field: &'s Field<Names<raw::Shard>>,
    report: &mut Report<'_>,
) -> Option<&'s [Named<raw::Shard>]> {
    let given = field.given()?;
    let named = &given.value.0;
    if named.is_empty() {
        let hint = "such as a: { primary: \"redis://10.0.0.1:6379\" }";
        report.error(given.key, "`shards` is empty", hint);
        return None;
    }
    if named.len() > MAX_SHARDS {
        let message = format_args!("{} shards", named.len());
        report.error(given.key, message, format_args!("expected at most {MAX_SHARDS}"));
        return None;
    }
    Some(named)
}

/// Returns one shard, and adds its servers to `named_servers`. Returns `None` after reporting a
/// mistake.
pub(super) fn shard(
    named: &Named<raw::Shard>,
    named_servers: &mut NamedServers,
    report: &mut Report<'_>,
) -> Option<ShardSettings> {
    let topology = topology(named, named_servers, report);
    let weight = weight(named.value.as_ref()?, report);
    Some(ShardSettings {
        name: named.name.value.as_str().into(),
        topology: topology?,
        weight: weight?,
    })
}

/// Returns the weight of a shard, or `None` after reporting a mistake.
pub(super) fn weight(shard: &raw::Shard, report: &mut Report<'_>) -> Option<NonZeroU32> {
    at_most(&shard.weight, MAX_WEIGHT, "the weight is", report)
}
