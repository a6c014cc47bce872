//! Warnings about reservations in memcached with `layout: pairs`. That layout stores a fixed window
//! as two plain numbers, which cannot contain reservations.

use tollgate_core::{Algorithm, Limit, Policy};

use crate::decode::quoted;
use crate::raw::PolicyFile;
use crate::report::Report;
use crate::settings::{MemcachedLayout, MigrationStoreSettings, StoreSettings};
use crate::span::Span;

/// Warns of rules and limits with reservations that `layout: pairs` of memcached cannot store.
pub(super) fn warn(
    policy: &Policy,
    file: &PolicyFile,
    store: &StoreSettings,
    rule_spans: &[Span],
    report: &mut Report<'_>,
) {
    if !uses_pair_layout(store) {
        return;
    }
    let hint = "use `layout: cell` or another store for reservations";
    for (rule, at) in policy.rules().iter().zip(rule_spans) {
        let metered = rule.metered.iter().map(|metered| &policy.limits()[metered.limit].limit);
        for limit in metered.filter(|limit| is_pair(limit)) {
            let (rule, limit) = (quoted(&rule.name), quoted(limit.name()));
            let message = format_args!(
                "the cost of {rule} on {limit} is only known with the response, and `layout: \
                 pairs` cannot store reservations: on_failure decides each of its requests"
            );
            report.warning(*at, message, hint);
        }
    }
    let raw = file.limits.value().map_or(&[][..], |limits| &limits.0);
    for named in raw {
        let hold = named.value.as_ref().and_then(|limit| limit.reservation.given());
        let mut limits = policy.limits().iter().map(|binding| &binding.limit);
        let is_one = limits.any(|limit| limit.name() == &*named.name.value && is_pair(limit));
        if let Some(hold) = hold.filter(|_| is_one) {
            report.warning(
                hold.key,
                "`layout: pairs` cannot store reservations on a fixed window",
                hint,
            );
        }
    }
}

/// Returns whether a memcached store in `store` has the layout `pairs`.
fn uses_pair_layout(store: &StoreSettings) -> bool {
    let of_side = |side: &MigrationStoreSettings| match side {
        MigrationStoreSettings::Memcached(memcached) => memcached.layout == MemcachedLayout::Pairs,
        MigrationStoreSettings::Memory(_) | MigrationStoreSettings::Redis(_) => false,
    };
    match store {
        StoreSettings::Memcached(memcached) => memcached.layout == MemcachedLayout::Pairs,
        StoreSettings::Rollout(rollout) => of_side(&rollout.from) || of_side(&rollout.to),
        StoreSettings::Shadow(shadow) => of_side(&shadow.store),
        StoreSettings::Memory(_) | StoreSettings::Redis(_) => false,
    }
}

fn is_pair(limit: &Limit) -> bool {
    matches!(limit.algorithm(), Algorithm::FixedWindow(_))
}
