//! The counters from which the history of a node is computed.

use std::sync::{Arc, OnceLock};

use tollgate::observe::{ByDecider, Decider, Decisions, Observed};
use tollgate::{Clock, SystemClock};
use tollgate_server::http::{History, HistoryCounts, HistoryReading};

use super::ListenerMetrics;

/// Returns the history of the counters in `decisions`, with the durations of the `listeners`.
pub(super) fn of(
    decisions: Arc<Decisions>,
    listeners: Arc<OnceLock<Vec<ListenerMetrics>>>,
) -> History {
    History::new(SystemClock.now().as_millis(), move || {
        let (admitted, refused) = decisions.totals();
        let limits = decisions.limits();
        let would_refuse = limits.iter().map(|limit| limit.shadow_refused).sum();
        let requests = counts(admitted, refused, refused, would_refuse);
        let limits = limits.into_iter().map(|limit| {
            let refusals =
                counts(limit.admitted, limit.refusals, limit.refused, limit.shadow_refused);
            (limit.limit, refusals)
        });
        HistoryReading {
            at_ms: SystemClock.now().as_millis(),
            requests,
            latency: latency(listeners.get().map_or(&[][..], Vec::as_slice)),
            limits: limits.collect(),
        }
    })
}

/// Returns the counts of decisions for the history. The refused decisions are the sum of
/// `refusals`. The degraded decisions, which the node made because the store did not answer, are
/// counted from `admitted` and `refused`. For a limit, `refusals` are only the refusals by this
/// limit, and `refused` are all refusals of requests to which the limit applied.
fn counts(
    admitted: ByDecider,
    refusals: ByDecider,
    refused: ByDecider,
    would_refuse: u64,
) -> HistoryCounts {
    let degraded = [Decider::Fallback, Decider::Failure]
        .map(|decider| admitted[decider as usize].saturating_add(refused[decider as usize]));
    HistoryCounts {
        admitted: admitted.iter().sum(),
        refused: refusals.iter().sum(),
        degraded: degraded.iter().sum(),
        would_refuse,
    }
}

/// Returns the durations of all decisions, over all listeners.
fn latency(listeners: &[ListenerMetrics]) -> Observed {
    let durations = listeners.iter().filter_map(|listener| listener.latency.as_ref());
    durations.fold(Observed::NOTHING, |all, latency| all.plus(&latency.read()))
}
