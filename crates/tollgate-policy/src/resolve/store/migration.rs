//! Converts the keys `rollout` and `shadow` to the settings of a rollout and of a shadow store.

use tollgate_core::Percent;

use super::super::names::NameTable;
use super::server::keyspace;
use super::{ONE_OF_TWO, StoreKinds, is_one, key};
use crate::decode::{Field, Spanned};
use crate::raw::{PolicyFile, Rollout, Shadow, Side, Subject};
use crate::report::Report;
use crate::settings::{
    DecisionClock, MigrationStoreSettings, RedisSettings, RolloutSettings, ShadowSettings, Topology,
};

/// Returns the settings of a rollout, or `None` after reporting a mistake.
pub(super) fn rollout(
    given: &Spanned<Rollout>,
    file: &PolicyFile,
    subjects: &mut NameTable<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<RolloutSettings> {
    let rollout = &given.value;
    let from = side(&rollout.from, file, subjects, report);
    let to = side(&rollout.to, file, subjects, report);
    check_distinct(&rollout.to, from.as_ref(), to.as_ref(), report)?;
    let sides = [("from", &rollout.from, &from), ("to", &rollout.to, &to)];
    check_clocks(sides, "a window that moves is evaluated with the other clock", report);
    Some(RolloutSettings {
        percent: rollout.percent.value()?.0,
        on_move: match &rollout.on_move {
            Field::Invalid => return None,
            on_move => on_move.value().map(|on_move| on_move.0).unwrap_or_default(),
        },
        from: from?,
        to: to?,
    })
}

/// Returns the settings of a shadow store, or `None` after reporting a mistake.
pub(super) fn shadow(
    given: &Spanned<Shadow>,
    file: &PolicyFile,
    subjects: &mut NameTable<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<ShadowSettings> {
    let shadow = &given.value;
    let store = side(&shadow.store, file, subjects, report);
    let compared_with = side(&shadow.shadow_store, file, subjects, report);
    check_distinct(&shadow.shadow_store, store.as_ref(), compared_with.as_ref(), report)?;
    let sides =
        [("store", &shadow.store, &store), ("shadow_store", &shadow.shadow_store, &compared_with)];
    check_clocks(sides, "differences may only be due to the clocks", report);
    let percent = match &shadow.percent {
        Field::Absent => Percent::ALL,
        Field::Invalid => return None,
        Field::Value(percent) => percent.value.0,
    };
    Some(ShadowSettings { percent, store: store?, compared_with: compared_with? })
}

fn side(
    field: &Field<Side>,
    file: &PolicyFile,
    subjects: &mut NameTable<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<MigrationStoreSettings> {
    let given = field.given()?;
    let Side { memory, redis, memcached } = &given.value;
    if memory.is_invalid() || redis.is_invalid() || memcached.is_invalid() {
        return None;
    }
    let keys = [key(memory), key(redis), key(memcached)];
    if !is_one(given.at, &keys, ONE_OF_TWO, report) {
        return None;
    }
    StoreKinds { memory, redis, memcached }.settings(file, subjects, report)
}

/// Checks that the two stores of a rollout or a shadow store do not use the same database. Returns
/// `None` after reporting that they do, or if one of the stores has a mistake.
///
/// A subject has the same keys in both stores, so a charge or refund that is sent to both would
/// count twice. Two databases of one Redis server are different, and so are two memory stores of
/// one process. Two memcached stores are the same if they list the same servers.
fn check_distinct(
    second: &Field<Side>,
    one: Option<&MigrationStoreSettings>,
    other: Option<&MigrationStoreSettings>,
    report: &mut Report<'_>,
) -> Option<()> {
    let is_same = match (one?, other?) {
        (MigrationStoreSettings::Redis(one), MigrationStoreSettings::Redis(other)) => {
            let others = keyspaces(other);
            keyspaces(one).iter().any(|keyspace| others.contains(keyspace))
        }
        (MigrationStoreSettings::Memcached(one), MigrationStoreSettings::Memcached(other)) => {
            one.servers == other.servers
        }
        _ => false,
    };
    if is_same {
        let hint = "list other servers, or another database of them such as redis://HOST:6379/1";
        report.error(second.given()?.at, "both stores use the same servers", hint);
        return None;
    }
    Some(())
}

/// Returns the databases that a store uses, as pairs of a server and the number of the database. A
/// server is represented by its address, or by the address of a sentinel and the name of the
/// service.
fn keyspaces(redis: &RedisSettings) -> Vec<(String, u32)> {
    let previous = redis.previous.iter().flat_map(|map| &map.shards);
    let mut keyspaces = Vec::new();
    for shard in redis.shards.iter().chain(previous) {
        match &shard.topology {
            Topology::Static { primary, replicas } => {
                let servers = std::iter::once(primary).chain(replicas);
                keyspaces.extend(servers.filter_map(|url| keyspace(url)));
            }
            Topology::Cluster { nodes } => {
                keyspaces.extend(nodes.iter().filter_map(|url| keyspace(url)));
            }
            Topology::Sentinel { sentinels, service, .. } => {
                let keys = sentinels.iter().filter_map(|url| keyspace(url));
                keyspaces.extend(keys.map(|(place, _)| (format!("{place} {service}"), 0)));
            }
        }
    }
    keyspaces
}

/// Warns of two stores that use different clocks. The warning marks the key that sets the clock.
fn check_clocks(
    sides: [(&str, &Field<Side>, &Option<MigrationStoreSettings>); 2],
    what_of_it: &str,
    report: &mut Report<'_>,
) {
    let decides_by =
        |(_, _, side): &(&str, &Field<Side>, &Option<MigrationStoreSettings>)| match side {
            Some(MigrationStoreSettings::Redis(redis)) => redis.clock,
            _ => DecisionClock::Application,
        };
    let [by_shards, by_nodes] = match sides.each_ref().map(decides_by) {
        [DecisionClock::Store, DecisionClock::Application] => [&sides[0], &sides[1]],
        [DecisionClock::Application, DecisionClock::Store] => [&sides[1], &sides[0]],
        _ => return,
    };
    let redis = by_shards.1.value().and_then(|side| side.redis.value());
    let Some(clock) = redis.and_then(|redis| redis.clock.given()) else { return };
    let message = format_args!(
        "`{}` uses its shards' clock and `{}` the nodes' clock: {what_of_it}",
        by_shards.0, by_nodes.0
    );
    let hint = "set the same `clock` for both, or synchronize the clocks to within `skew_max`";
    report.warning(clock.at, message, hint);
}
