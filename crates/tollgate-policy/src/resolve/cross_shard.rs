//! Warnings about charges that can span several shards.
//!
//! For each limit, one subject determines the shard. The limits of one charge are on different
//! shards if different subjects determine their shards. If one of these limits refuses, the charges
//! on the other limits are refunded, which takes a second round trip.

use std::ops::Range;

use tollgate_core::Policy;
use tollgate_core::policy::MatchMode;

use crate::decode::{Field, quoted};
use crate::raw::{PolicyFile, Redis, Side};
use crate::report::Report;
use crate::settings::{MigrationStoreSettings, RedisSettings, StoreSettings};
use crate::span::Span;

/// Warns of rules with limits that can be on several shards, in the current shard map or in the
/// previous one. Also warns of a `route_by` that determines the shard of no limit.
pub(super) fn warn(
    policy: &Policy,
    file: &PolicyFile,
    store: &StoreSettings,
    rule_spans: &[Span],
    report: &mut Report<'_>,
) {
    for (redis, raw) in fleets(store, file) {
        let in_force = RoutingTable::new(policy, redis.shards.len(), redis.route_by.as_deref());
        let previous = redis.previous.as_ref();
        let left = previous
            .map(|map| RoutingTable::new(policy, map.shards.len(), map.route_by.as_deref()));
        if in_force.shards > 1 {
            warn_of_unused_route_by(raw, &in_force, report);
        }
        for together in charged_together(policy) {
            let spans = &rule_spans[together.clone()];
            if let Some(apart) = in_force.apart(together.clone(), spans) {
                apart.warn("shards: if so,", &in_force, report);
            } else if let Some(left) = &left
                && let Some(apart) = left.apart(together, spans)
            {
                apart.warn("shards of `previous`: until all subjects have moved,", left, report);
            }
        }
    }
}

/// Returns the settings of each Redis store, with the raw keys from which they were resolved. A
/// rollout and a shadow store can contain two Redis stores.
fn fleets<'f>(
    store: &'f StoreSettings,
    file: &'f PolicyFile,
) -> Vec<(&'f RedisSettings, Option<&'f Redis>)> {
    let raw = file.store.value();
    let side = |settings: &'f MigrationStoreSettings, side: Option<&'f Field<Side>>| match settings
    {
        MigrationStoreSettings::Redis(redis) => {
            let raw = side.and_then(|side| side.value()?.redis.value());
            Some((&**redis, raw))
        }
        MigrationStoreSettings::Memory(_) | MigrationStoreSettings::Memcached(_) => None,
    };
    match store {
        StoreSettings::Redis(redis) => {
            vec![(redis, raw.and_then(|store| store.redis.value()))]
        }
        StoreSettings::Rollout(rollout) => {
            let raw = raw.and_then(|store| store.rollout.value());
            let from = side(&rollout.from, raw.map(|rollout| &rollout.from));
            let to = side(&rollout.to, raw.map(|rollout| &rollout.to));
            from.into_iter().chain(to).collect()
        }
        StoreSettings::Shadow(shadow) => {
            let raw = raw.and_then(|store| store.shadow.value());
            let store = side(&shadow.store, raw.map(|shadow| &shadow.store));
            let other = side(&shadow.compared_with, raw.map(|shadow| &shadow.shadow_store));
            store.into_iter().chain(other).collect()
        }
        StoreSettings::Memory(_) | StoreSettings::Memcached(_) => Vec::new(),
    }
}

/// Returns the sets of rules that can charge one request together. A set is a range of indices of
/// rules. If only the first matching rule applies, each set is a single rule. Otherwise all rules
/// are one set.
fn charged_together(policy: &Policy) -> Vec<Range<usize>> {
    let rules = 0..policy.rules().len();
    match policy.match_mode() {
        MatchMode::FirstMatch => rules.map(|rule| rule..rule + 1).collect(),
        MatchMode::AllMatches => vec![rules],
    }
}

/// The routing of limits in one shard map: for each limit, the subject that determines the shard of
/// its counters.
struct RoutingTable<'p> {
    policy: &'p Policy,
    shards: usize,
    route_by: Option<usize>,
}

/// The result of a check: a charge that can be on several shards, and the rule that causes it.
struct CrossShardRule<'p> {
    rule: &'p str,
    at: Span,
    /// The limits of the charge, as indices.
    limits: Vec<usize>,
    limit: usize,
}

impl<'p> RoutingTable<'p> {
    fn new(policy: &'p Policy, shards: usize, route_by: Option<&str>) -> Self {
        let dimensions = policy.dimensions();
        let route_by = route_by
            .and_then(|chosen| dimensions.iter().position(|dimension| &*dimension.name == chosen));
        Self { policy, shards, route_by }
    }

    /// Returns the first rule that makes the charge of the rules `together` span several shards, or
    /// `None` if all limits of the charge are on one shard. `together` are the indices of rules,
    /// and `spans` are the positions of these rules in the file.
    fn apart(&self, together: Range<usize>, spans: &[Span]) -> Option<CrossShardRule<'p>> {
        if self.shards < 2 {
            return None;
        }
        let rules = self.policy.rules()[together].iter().zip(spans);
        let uses =
            rules.flat_map(|(rule, at)| rule.limits.iter().map(move |used| (used, rule, *at)));
        let uses: Vec<_> = uses.map(|(used, rule, at)| (used.limit, rule, at)).collect();
        let (first, ..) = uses.first()?;
        let (limit, rule, at) =
            uses.iter().find(|(limit, ..)| self.of(*limit) != self.of(*first))?;
        let limits = uses.iter().map(|(limit, ..)| *limit).collect();
        Some(CrossShardRule { rule: &rule.name, at: *at, limits, limit: *limit })
    }

    /// Returns the index of the dimension that determines the shard of the limit with the index
    /// `limit`. Returns `None` if all clients share the limit's counter.
    fn of(&self, limit: usize) -> Option<usize> {
        let per = &self.policy.limits()[limit].per;
        let chosen = self.route_by.filter(|chosen| per.contains(chosen));
        chosen.or_else(|| per.first().copied())
    }

    /// Returns the name of a subject that occurs in the `per` of all `limits`, if there is one.
    /// With this subject as `route_by`, all `limits` are on one shard.
    fn common(&self, limits: &[usize]) -> Option<&'p str> {
        let per = |limit: &usize| &self.policy.limits()[*limit].per;
        let (first, others) = limits.split_first()?;
        let is_common =
            |dimension: &&usize| others.iter().all(|limit| per(limit).contains(dimension));
        let common = per(first).iter().find(is_common)?;
        Some(&self.policy.dimensions()[*common].name)
    }

    /// Describes how the shard of a limit is determined, for example `core is routed by token`.
    fn describe(&self, limit: usize) -> String {
        let name = self.policy.limits()[limit].limit.name();
        match self.of(limit) {
            Some(dimension) => {
                format!("{name} is routed by {}", self.policy.dimensions()[dimension].name)
            }
            None => format!("{name} has one counter for all clients"),
        }
    }
}

fn warn_of_unused_route_by(
    redis: Option<&Redis>,
    routes: &RoutingTable<'_>,
    report: &mut Report<'_>,
) {
    let (Some(given), Some(chosen)) =
        (redis.and_then(|redis| redis.route_by.given()), routes.route_by)
    else {
        return;
    };
    if !routes.policy.limits().iter().any(|limit| limit.per.contains(&chosen)) {
        let message =
            format_args!("no limit counts per {}, so nothing is routed by it", given.value.0);
        report.warning(
            given.at,
            message,
            "limits are routed by the first subject of their `per` instead",
        );
    }
}

impl CrossShardRule<'_> {
    /// Warns that the charge of this rule can span several shards. `routes` states which subject
    /// determines the shard of each limit, and `shards` describes the shards in the message.
    fn warn(&self, shards: &str, routes: &RoutingTable<'_>, report: &mut Report<'_>) {
        let message = format_args!(
            "a charge of the rule {} may span {shards} a refusal needs a second round trip",
            quoted(self.rule)
        );
        let which = format!("{}, {}", routes.describe(self.limits[0]), routes.describe(self.limit));
        match routes.common(&self.limits) {
            Some(common) => {
                let hint = format_args!("{which}; route_by: {common} keeps them on one shard");
                report.warning(self.at, message, hint);
            }
            None => report.warning(self.at, message, which),
        }
    }
}
