//! Metrics of rollouts and shadow stores: the progress of a move, and differences between stores.

use tollgate_backend::{Backend, RolloutBackend, ShadowBackend};
use tollgate_server::http::Percentage;
use tollgate_server::metrics::Exposition;

use super::families::{
    ROLLOUT_PERCENT, ROLLOUT_REFUND_FAILURES, ROLLOUT_TRANSFER_FAILURES, ROLLOUT_TRANSFERRED,
    SHADOW_STORE_COMPARED, SHADOW_STORE_DIFFERENCES, SHADOW_STORE_MISSED, SHADOW_STORE_PERCENT,
};

const NO_LABEL: [&str; 0] = [];

pub(super) fn write(page: &mut Exposition, store: &Backend) {
    match store {
        Backend::Rollout(moving) => rollout(page, moving),
        Backend::Shadow(both) => compared(page, both),
        Backend::Memory(_) | Backend::Redis(_) | Backend::Memcached(_) => {}
    }
}

fn rollout(page: &mut Exposition, moving: &RolloutBackend<Backend>) {
    page.family(&ROLLOUT_PERCENT, [(NO_LABEL, Percentage(moving.percentage().get()))]);
    for (family, value) in [
        (&ROLLOUT_TRANSFERRED, moving.transferred()),
        (&ROLLOUT_TRANSFER_FAILURES, moving.failed_transfers()),
        (&ROLLOUT_REFUND_FAILURES, moving.unrefunded()),
    ] {
        page.family(family, [(NO_LABEL, value)]);
    }
}

fn compared(page: &mut Exposition, compared: &ShadowBackend<Backend>) {
    let observed = compared.differences();
    page.family(&SHADOW_STORE_PERCENT, [(NO_LABEL, Percentage(compared.percentage().get()))]);
    page.family(&SHADOW_STORE_COMPARED, [(NO_LABEL, observed.compared)]);
    let kinds = [
        ("decision", observed.decision),
        ("remaining", observed.remaining),
        ("reset", observed.reset),
    ];
    page.family(&SHADOW_STORE_DIFFERENCES, kinds.map(|(kind, count)| ([kind], count)));
    let missed = [
        ("unanswered", observed.unanswered),
        ("skipped", observed.skipped),
        ("uncomparable", observed.uncomparable),
    ];
    page.family(&SHADOW_STORE_MISSED, missed.map(|(reason, count)| ([reason], count)));
}
