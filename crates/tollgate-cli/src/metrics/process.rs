//! Metrics of the build, the current policy, and the listeners.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use tollgate::Revision;
use tollgate::observe::Histogram;
use tollgate_backend::ReloadStatus;
use tollgate_server::metrics::Exposition;
use tollgate_server::otlp::ExportCounts;
use tollgate_server::{CloseReason, ConnectionSlots};

use super::families::{
    BUILD, CLOSED, CONNECTIONS, CONNECTIONS_MAX, DURATION, FILE_REJECTED, POLICY, RELOADED_AT,
    RELOADS, SPANS, WRONG_TOKENS,
};
use super::proxy::ProxyConnections;
use crate::version::VERSION;

/// A listener and its counters.
#[derive(Debug)]
pub(crate) struct ListenerMetrics {
    pub(crate) slots: ConnectionSlots,
    /// The durations of decisions, if the listener makes decisions.
    pub(crate) latency: Option<Arc<Histogram>>,
}

pub(super) fn build(page: &mut Exposition) {
    page.family(&BUILD, [([VERSION], 1)]);
}

pub(super) fn policy(page: &mut Exposition, policy: &Revision, reloads: &ReloadStatus) {
    page.family(&POLICY, [([&**policy.version()], 1)]);
    page.family(&RELOADS, [(["applied"], reloads.done), (["rejected"], reloads.refused)]);
    let at = reloads.replaced_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    page.family(&RELOADED_AT, at.map(|at| ([""; 0], at.as_secs())));
    page.family(&FILE_REJECTED, [([""; 0], u8::from(reloads.refusal.is_some()))]);
}

pub(super) fn spans(page: &mut Exposition, exports: ExportCounts) {
    let outcomes =
        [("exported", exports.exported), ("failed", exports.lost), ("dropped", exports.dropped)];
    page.family(&SPANS, outcomes.map(|(outcome, spans)| ([outcome], spans)));
}

pub(super) fn listeners(
    page: &mut Exposition,
    listeners: &[ListenerMetrics],
    proxy: Option<&ProxyConnections>,
) {
    let latencies = listeners.iter().filter_map(|listener| {
        let latency = listener.latency.as_ref()?;
        Some(([listener.slots.listener], latency.read()))
    });
    page.histogram(&DURATION, latencies);
    let slots = || listeners.iter().map(|listener| &listener.slots);
    let open = slots().map(|slots| ([slots.listener], slots.connections()));
    page.family(&CONNECTIONS, open.chain(proxy.map(ProxyConnections::open)));
    let most = slots().map(|slots| ([slots.listener], slots.at_once));
    page.family(&CONNECTIONS_MAX, most.chain(proxy.map(ProxyConnections::limit)));
    let closed = slots().flat_map(|slots| {
        let count = |reason: CloseReason| slots.counters().closed(reason);
        CloseReason::ALL.map(|reason| ([slots.listener, reason.name()], count(reason)))
    });
    page.family(&CLOSED, closed);
    let wrong = slots().map(|slots| ([slots.listener], slots.counters().wrong_tokens()));
    page.family(&WRONG_TOKENS, wrong);
}
