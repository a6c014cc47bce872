//! Checks that the clocks of memcached servers are exact enough for the limits.

use tollgate_core::Millis;

use super::names::NameTable;
use crate::decode::quoted;
use crate::raw::Limit;
use crate::report::Report;
use crate::settings::{MigrationStoreSettings, StoreSettings};

/// The smallest `skew_max` of a limit in memcached. A server reports its time in whole seconds, and
/// the estimates of two nodes can differ by 2.25 s (twice `TIME_UNCERTAINTY` of
/// `tollgate-memcached`). A node decides by its estimate unless its own clock certainly differs from
/// the server's by at most half of `skew_max`. So from 2.25 s on, the times by which two nodes decide
/// never differ by more than `skew_max`, and neither node discards the state of the other.
///
/// A smaller `skew_max` than 6.5 s permits that the estimate replaces a correct clock. No state is
/// lost by this, so it is not refused.
const SMALLEST: Millis = Millis::new(2_250);

/// Reports limits with a smaller `skew_max` than [`SMALLEST`], if they are in memcached.
pub(super) fn check(
    limits: &NameTable<'_, Limit>,
    store: Option<&StoreSettings>,
    report: &mut Report<'_>,
) {
    if !store.is_some_and(uses_memcached) {
        return;
    }
    for named in limits.all() {
        let skew_max = named.value.as_ref().and_then(|limit| limit.skew_max.given());
        if let Some(skew_max) = skew_max.filter(|skew_max| skew_max.value.0 < SMALLEST) {
            let name = quoted(&named.name.value);
            let message = format_args!("`skew_max` of the limit {name} is too small for memcached");
            let hint =
                "expected at least 2250ms, because memcached reports its time in whole seconds";
            report.error(skew_max.at, message, hint);
        }
    }
}

fn uses_memcached(store: &StoreSettings) -> bool {
    let is_memcached = |side: &MigrationStoreSettings| match side {
        MigrationStoreSettings::Memcached(_) => true,
        MigrationStoreSettings::Memory(_) | MigrationStoreSettings::Redis(_) => false,
    };
    match store {
        StoreSettings::Memcached(_) => true,
        StoreSettings::Rollout(two) => is_memcached(&two.from) || is_memcached(&two.to),
        StoreSettings::Shadow(two) => is_memcached(&two.store) || is_memcached(&two.compared_with),
        StoreSettings::Memory(_) | StoreSettings::Redis(_) => false,
    }
}
