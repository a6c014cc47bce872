//! Where limits are decided: by the store, or by nodes with leases.

use tollgate_core::policy::Rule;
use tollgate_core::{Limit, LimitError, LimitMode, Millis, Policy};

use super::names::Known;
use crate::read::{Field, quoted};
use crate::report::Report;
use crate::written;

/// A lease that lasts no longer is hardly used up before it ends.
const SHORT: Millis = Millis::new(100);

/// The limit, decided where it says.
pub(super) fn decided(
    limit: Limit,
    written: &written::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    match &written.mode {
        Field::Absent => Some(limit),
        Field::Wrong => None,
        Field::Given(given) => {
            let refused = |error: LimitError| {
                let hint = "leave `mode` out: each request is then decided by the store";
                report.mistake(given.at, error, hint);
            };
            limit.with_mode(given.value.0).map_err(refused).ok()
        }
    }
}

/// Warns of leases that spare the store nothing.
pub(super) fn warn_of_idle_leases(
    policy: &Policy,
    limits: &Known<'_, written::Limit>,
    report: &mut Report<'_>,
) {
    for (index, limit_for) in policy.limits().iter().enumerate() {
        let limit = &limit_for.limit;
        let mut written = limits.all().iter().filter(|named| *named.name.value == *limit.name());
        let written = written.next().and_then(|named| named.value.as_ref());
        let Some(mode) = written.and_then(|written| written.mode.given()) else { continue };
        if limit.mode() != LimitMode::Leased {
            continue;
        }
        let name = quoted(limit.name());
        if let Some(longest) = limit.longest_lease().filter(|longest| *longest < SHORT) {
            let message = format_args!("a lease of {name} lasts for {longest}");
            report.warning(mode.at, message, "a longer window or precision makes it worth taking");
        }
        let meters = |rule: &&Rule| rule.metered.iter().any(|metered| metered.limit == index);
        if let Some(rule) = policy.rules().iter().find(meters) {
            let rule = quoted(&rule.name);
            let message = format_args!("the rule {rule} reserves of {name} what its answers tell");
            report.warning(mode.at, message, "the store decides each reservation by itself");
        }
    }
}
