//! The units for which clients were admitted above a limit. The window of the limit is longer than
//! any run.

use std::collections::BTreeMap;

use tollgate::model::{DecisionSource, Operation, Subject};
use tollgate_conformance::history::{History, Outcome};

use super::policy::{HOUR, HOUR_QUOTA};

/// The excess of clients over the hourly limit: the admitted units of a client beyond its quota.
/// The units may have been admitted by the store or by nodes without the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excess {
    /// The largest excess of a client.
    pub(crate) worst: u64,
    /// The excess of all clients together.
    pub(crate) total: u64,
    /// The number of clients that used their whole quota.
    pub(crate) exhausted: u64,
}

impl Excess {
    /// Computes the excess in `history`.
    pub(crate) fn of(history: &History) -> Self {
        let units = Self::by_client(history, HOUR);
        let above = |admitted: &u64| admitted.saturating_sub(HOUR_QUOTA);
        Self {
            worst: units.values().map(above).max().unwrap_or_default(),
            total: units.values().map(above).sum(),
            exhausted: units.values().filter(|admitted| **admitted >= HOUR_QUOTA).count() as u64,
        }
    }

    /// Returns the admitted units of `limit` that were not refunded, for each client. A refund
    /// without an answer counts as executed.
    pub(crate) fn by_client<'h>(history: &'h History, limit: &str) -> BTreeMap<&'h Subject, u64> {
        Self::units(history, limit, |source| source != DecisionSource::DenyCache)
    }

    /// Returns the admitted units of `limit` for each client, like [`by_client`](Self::by_client),
    /// but counts only units that the store admitted.
    pub(crate) fn by_store<'h>(history: &'h History, limit: &str) -> BTreeMap<&'h Subject, u64> {
        Self::units(history, limit, |source| source == DecisionSource::Store)
    }

    fn units<'h>(
        history: &'h History,
        limit: &str,
        counts: fn(DecisionSource) -> bool,
    ) -> BTreeMap<&'h Subject, u64> {
        let mut units = BTreeMap::new();
        for call in &history.calls {
            for (index, charge) in call.charges.iter().enumerate() {
                if charge.limit.name() != limit {
                    continue;
                }
                let units: &mut u64 = units.entry(&charge.subject).or_default();
                match (charge.operation, &call.outcome) {
                    (Operation::Charge { cost, .. }, Outcome::Answered(readings))
                        if readings.all_admitted() && counts(readings.source()) =>
                    {
                        *units += cost.get();
                    }
                    (Operation::Refund { .. }, Outcome::Answered(readings)) => {
                        *units = units.saturating_sub(readings[index].refunded);
                    }
                    (Operation::Refund { cost, .. }, Outcome::Unknown) => {
                        *units = units.saturating_sub(cost.get());
                    }
                    _ => {}
                }
            }
        }
        units
    }
}
