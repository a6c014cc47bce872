//! Metrics of rollouts and shadow stores: the progress of a move, and differences between stores.

use tollgate_backend::{Backend, RolloutBackend, ShadowBackend};
use tollgate_server::http::Percentage;
use tollgate_server::metrics::Exposition;

use super::families::{
    COMPARED, COMPARED_PERCENT, DIFFERENCES, NOT_COMPARED, ROLLOUT_CARRIED, ROLLOUT_LEFT_BEHIND,
    ROLLOUT_PERCENT, ROLLOUT_STRANDED,
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
        (&ROLLOUT_CARRIED, moving.transferred()),
        (&ROLLOUT_LEFT_BEHIND, moving.failed_transfers()),
        (&ROLLOUT_STRANDED, moving.unrefunded()),
    ] {
        page.family(family, [(NO_LABEL, value)]);
    }
}

fn compared(page: &mut Exposition, compared: &ShadowBackend<Backend>) {
    let observed = compared.differences();
    page.family(&COMPARED_PERCENT, [(NO_LABEL, Percentage(compared.percentage().get()))]);
    page.family(&COMPARED, [(NO_LABEL, observed.compared)]);
    let kinds = [
        ("decision", observed.decision),
        ("remaining", observed.remaining),
        ("reset", observed.reset),
    ];
    page.family(&DIFFERENCES, kinds.map(|(kind, count)| ([kind], count)));
    let missed = [
        ("unanswered", observed.unanswered),
        ("skipped", observed.skipped),
        ("uncomparable", observed.uncomparable),
    ];
    page.family(&NOT_COMPARED, missed.map(|(reason, count)| ([reason], count)));
}
