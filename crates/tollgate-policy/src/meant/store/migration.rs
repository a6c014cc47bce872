//! Two stores at once.

use tollgate_core::Percent;

use super::super::names::Known;
use super::{Kinds, ONE_OF_TWO, is_one, key};
use crate::read::{Field, Given};
use crate::report::Report;
use crate::settings::{DecidingClock, RolloutSettings, ShadowSettings, SideSettings};
use crate::written::{PolicyFile, Rollout, Shadow, Side, Subject};

/// The settings as meant; `None` if something is wrong, which is reported.
pub(super) fn rollout(
    given: &Given<Rollout>,
    file: &PolicyFile,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<RolloutSettings> {
    let rollout = &given.value;
    let from = side(&rollout.from, file, subjects, report);
    let to = side(&rollout.to, file, subjects, report);
    are_two(&rollout.to, from.as_ref(), to.as_ref(), report)?;
    let sides = [("from", &rollout.from, &from), ("to", &rollout.to, &to)];
    go_by_one_clock(sides, "a window that moves is judged by the other clock", report);
    Some(RolloutSettings {
        percent: rollout.percent.value()?.0,
        on_move: match &rollout.on_move {
            Field::Wrong => return None,
            on_move => on_move.value().map(|on_move| on_move.0).unwrap_or_default(),
        },
        from: from?,
        to: to?,
    })
}

/// The settings as meant; `None` if something is wrong, which is reported.
pub(super) fn shadow(
    given: &Given<Shadow>,
    file: &PolicyFile,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<ShadowSettings> {
    let shadow = &given.value;
    let store = side(&shadow.store, file, subjects, report);
    let compared_with = side(&shadow.compared_with, file, subjects, report);
    are_two(&shadow.compared_with, store.as_ref(), compared_with.as_ref(), report)?;
    let sides = [
        ("store", &shadow.store, &store),
        ("compared_with", &shadow.compared_with, &compared_with),
    ];
    go_by_one_clock(sides, "what differs may be the clocks alone", report);
    let percent = match &shadow.percent {
        Field::Absent => Percent::ALL,
        Field::Wrong => return None,
        Field::Given(percent) => percent.value.0,
    };
    Some(ShadowSettings { percent, store: store?, compared_with: compared_with? })
}

fn side(
    field: &Field<Side>,
    file: &PolicyFile,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<SideSettings> {
    let given = field.given()?;
    let Side { memory, redis, memcached } = &given.value;
    if memory.is_wrong() || redis.is_wrong() || memcached.is_wrong() {
        return None;
    }
    let places = [key(memory), key(redis), key(memcached)];
    if !is_one(given.at, &places, ONE_OF_TWO, report) {
        return None;
    }
    Kinds { memory, redis, memcached }.settings(file, subjects, report)
}

/// Two stores in the same servers are one store, that counts twice. Each process has memory of its
/// own for either.
fn are_two(
    second: &Field<Side>,
    one: Option<&SideSettings>,
    other: Option<&SideSettings>,
    report: &mut Report<'_>,
) -> Option<()> {
    let is_same = match (one?, other?) {
        (SideSettings::Redis(one), SideSettings::Redis(other)) => one.shards == other.shards,
        (SideSettings::Memcached(one), SideSettings::Memcached(other)) => {
            one.servers == other.servers
        }
        _ => false,
    };
    if is_same {
        let hint = "name other servers, or leave one of them out";
        report.mistake(second.given()?.at, "both stores are the same servers", hint);
        return None;
    }
    Some(())
}

/// Warns of two stores that go by different clocks, at the word that says so.
fn go_by_one_clock(
    sides: [(&str, &Field<Side>, &Option<SideSettings>); 2],
    what_of_it: &str,
    report: &mut Report<'_>,
) {
    let goes_by = |(_, _, side): &(&str, &Field<Side>, &Option<SideSettings>)| match side {
        Some(SideSettings::Redis(redis)) => redis.clock,
        _ => DecidingClock::Application,
    };
    let [by_shards, by_nodes] = match sides.each_ref().map(goes_by) {
        [DecidingClock::Store, DecidingClock::Application] => [&sides[0], &sides[1]],
        [DecidingClock::Application, DecidingClock::Store] => [&sides[1], &sides[0]],
        _ => return,
    };
    let redis = by_shards.1.value().and_then(|side| side.redis.value());
    let Some(clock) = redis.and_then(|redis| redis.clock.given()) else { return };
    let message = format_args!(
        "`{}` goes by its shards' clock, and `{}` by the nodes': {what_of_it}",
        by_shards.0, by_nodes.0
    );
    let hint = "give both the same `clock`, or keep the clocks together within `skew_max`";
    report.warning(clock.at, message, hint);
}
