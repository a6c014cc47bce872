//! Checks that the state of each subject fits the memory store.

use tollgate_core::algo::sliding_log;
use tollgate_core::policy::QuotasByValue;
use tollgate_core::{Algorithm, Limit as CoreLimit};

use super::limits::ResolvedLimit;
use super::names::NameTable;
use crate::decode::{Field, Named, Spanned, quoted};
use crate::raw::Limit;
use crate::report::Report;
use crate::settings::{MemoryBounds, MigrationStoreSettings, StoreSettings};

/// Reports limits for which the state of one subject can become larger than the memory store
/// allows.
pub(super) fn check(
    limits: &NameTable<'_, Limit>,
    counted: &[Option<ResolvedLimit>],
    store: Option<&StoreSettings>,
    report: &mut Report<'_>,
) {
    let Some(bounds) = store.and_then(smallest) else { return };
    for (named, counted) in limits.all().iter().zip(counted) {
        let (Some(raw), Some(counted)) = (&named.value, counted) else { continue };
        let by_value = counted.quotas.iter().flat_map(QuotasByValue::limits);
        let limits = by_value.chain([&counted.limit.limit]);
        if let Some(largest) = limits.max_by_key(|limit| limit.largest_state()) {
            check_limit(named, raw, largest, bounds, report);
        }
    }
}

fn check_limit(
    named: &Named<Limit>,
    raw: &Limit,
    limit: &CoreLimit,
    bounds: MemoryBounds,
    report: &mut Report<'_>,
) {
    let (needed, room) = (limit.largest_state(), bounds.largest_state());
    if needed <= room {
        return;
    }
    let name = quoted(&named.name.value);
    let message = format!(
        "one subject of the limit {name} can need {needed} bytes, and the memory store allows {room}"
    );
    let (at, fitting) = match limit.algorithm() {
        Algorithm::SlidingWindow(limit) => {
            let blocks = (room * limit.blocks() / needed).max(1);
            let precision = limit.window().get().div_ceil(blocks);
            (at(&raw.precision), format!("the finest precision that fits is {precision}ms"))
        }
        Algorithm::SlidingLog(log) => {
            let overdraft = limit.reservation_terms().overdraft;
            let entries = log.quota().saturating_add(overdraft).min(sliding_log::MAX_QUOTA);
            let fitting = match room * entries / needed {
                most if overdraft == 0 => format!("the largest quota that fits is {most}"),
                most => format!("quota and overdraft fit if they are at most {most} together"),
            };
            (at(&raw.quota), fitting)
        }
        _ => {
            let quota = room * limit.capacity() / needed;
            (at(&raw.quota), format!("the largest quota that fits is {quota}"))
        }
    };
    let bytes = needed * MemoryBounds::STATE_OF;
    let hint = format!("{fitting}; or raise the bound: max_bytes: {bytes}");
    report.error(at.or_else(|| self::at(&raw.quota)).unwrap_or(named.name.at), message, hint);
}

fn at<T>(field: &Field<T>) -> Option<crate::span::Span> {
    field.given().map(|given: &Spanned<T>| given.at)
}

/// Returns the bounds of the memory store in `store`. If `store` contains two memory stores,
/// returns the bounds of the smaller one. Returns `None` if it contains none.
fn smallest(store: &StoreSettings) -> Option<MemoryBounds> {
    let of_leaf = |leaf: &MigrationStoreSettings| match leaf {
        MigrationStoreSettings::Memory(bounds) => Some(*bounds),
        _ => None,
    };
    match store {
        StoreSettings::Memory(bounds) => Some(*bounds),
        StoreSettings::Redis(_) | StoreSettings::Memcached(_) => None,
        StoreSettings::Rollout(two) => {
            let bounds = [of_leaf(&two.from), of_leaf(&two.to)];
            bounds.into_iter().flatten().min_by_key(|bounds| bounds.max_bytes)
        }
        StoreSettings::Shadow(two) => of_leaf(&two.store),
    }
}
