//! Rollouts and shadow stores.

use tollgate_core::Percent;

use super::super::names::NameTable;
use super::{ONE_OF_TWO, StoreKinds, is_one, key};
use crate::decode::{Field, Spanned};
use crate::raw::{PolicyFile, Rollout, Shadow, Side, Subject};
use crate::report::Report;
use crate::settings::{DecisionClock, MigrationStoreSettings, RolloutSettings, ShadowSettings};

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
    let places = [key(memory), key(redis), key(memcached)];
    if !is_one(given.at, &places, ONE_OF_TWO, report) {
        return None;
    }
    StoreKinds { memory, redis, memcached }.settings(file, subjects, report)
}

/// Reports two stores that use the same servers: they would be one store that counts every request
/// twice. Two memory stores of one process are separate.
fn check_distinct(
    second: &Field<Side>,
    one: Option<&MigrationStoreSettings>,
    other: Option<&MigrationStoreSettings>,
    report: &mut Report<'_>,
) -> Option<()> {
    let is_same = match (one?, other?) {
        (MigrationStoreSettings::Redis(one), MigrationStoreSettings::Redis(other)) => {
            one.shards == other.shards
        }
        (MigrationStoreSettings::Memcached(one), MigrationStoreSettings::Memcached(other)) => {
            one.servers == other.servers
        }
        _ => false,
    };
    if is_same {
        let hint = "list other servers, or remove one of them";
        report.error(second.given()?.at, "both stores use the same servers", hint);
        return None;
    }
    Some(())
}

/// Warns of two stores that use different clocks, at the key that sets the clock.
fn check_clocks(
    sides: [(&str, &Field<Side>, &Option<MigrationStoreSettings>); 2],
    what_of_it: &str,
    report: &mut Report<'_>,
) {
    let goes_by = |(_, _, side): &(&str, &Field<Side>, &Option<MigrationStoreSettings>)| match side
    {
        Some(MigrationStoreSettings::Redis(redis)) => redis.clock,
        _ => DecisionClock::Application,
    };
    let [by_shards, by_nodes] = match sides.each_ref().map(goes_by) {
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
