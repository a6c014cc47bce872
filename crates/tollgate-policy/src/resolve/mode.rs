//! Converts the key `mode` of a limit: the store decides, or nodes decide with quota leases.

use tollgate_core::policy::Rule;
use tollgate_core::{Limit, LimitError, LimitMode, Millis, Policy};

use super::names::NameTable;
use crate::decode::{Field, quoted};
use crate::raw;
use crate::report::Report;

/// The length of a quota lease below which the policy gets a warning: such a lease usually ends
/// before its units are used.
const SHORT: Millis = Millis::new(100);

/// Returns the limit with the mode that the file sets. Returns `None` after reporting a mistake.
pub(super) fn decided(limit: Limit, raw: &raw::Limit, report: &mut Report<'_>) -> Option<Limit> {
    match &raw.mode {
        Field::Absent => Some(limit),
        Field::Invalid => None,
        Field::Value(given) => {
            let refused = |error: LimitError| {
                let hint = "remove `mode`: the store then decides each request";
                report.error(given.at, error, hint);
            };
            limit.with_mode(given.value.0).map_err(refused).ok()
        }
    }
}

/// Warns of leased limits for which quota leases save few or no store calls.
pub(super) fn warn_of_idle_leases(
    policy: &Policy,
    limits: &NameTable<'_, raw::Limit>,
    report: &mut Report<'_>,
) {
    for (index, binding) in policy.limits().iter().enumerate() {
        let limit = &binding.limit;
        let mut raw = limits.all().iter().filter(|named| *named.name.value == *limit.name());
        let raw = raw.next().and_then(|named| named.value.as_ref());
        let Some(mode) = raw.and_then(|raw| raw.mode.given()) else { continue };
        if limit.mode() != LimitMode::Leased {
            continue;
        }
        let name = quoted(limit.name());
        if let Some(longest) = limit.longest_lease().filter(|longest| *longest < SHORT) {
            let message = format_args!("a lease of {name} lasts for {longest}");
            report.warning(
                mode.at,
                message,
                "leases are effective with a longer window or precision",
            );
        }
        let meters = |rule: &&Rule| rule.metered.iter().any(|metered| metered.limit == index);
        if let Some(rule) = policy.rules().iter().find(meters) {
            let rule = quoted(&rule.name);
            let message = format_args!(
                "the rule {rule} reserves units of {name} until the response is known"
            );
            report.warning(
                mode.at,
                message,
                "the store decides every reservation, so the lease saves no calls",
            );
        }
    }
}
