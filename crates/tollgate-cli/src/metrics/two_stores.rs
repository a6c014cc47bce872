//! Two stores at once: how far a move is, and how they differ.

use tollgate_backend::{Backend, Compared, Moving};
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

fn rollout(page: &mut Exposition, moving: &Moving) {
    page.family(&ROLLOUT_PERCENT, [(NO_LABEL, Percentage(moving.dial().get()))]);
    for (family, value) in [
        (&ROLLOUT_CARRIED, moving.carried()),
        (&ROLLOUT_LEFT_BEHIND, moving.left_behind()),
        (&ROLLOUT_STRANDED, moving.stranded()),
    ] {
        page.family(family, [(NO_LABEL, value)]);
    }
}

fn compared(page: &mut Exposition, compared: &Compared) {
    let seen = compared.differences();
    page.family(&COMPARED_PERCENT, [(NO_LABEL, Percentage(compared.dial().get()))]);
    page.family(&COMPARED, [(NO_LABEL, seen.compared)]);
    let kinds = [("verdict", seen.verdict), ("remaining", seen.remaining), ("reset", seen.reset)];
    page.family(&DIFFERENCES, kinds.map(|(kind, count)| ([kind], count)));
    let missed = [
        ("unanswered", seen.unanswered),
        ("skipped", seen.skipped),
        ("uncomparable", seen.uncomparable),
    ];
    page.family(&NOT_COMPARED, missed.map(|(reason, count)| ([reason], count)));
}
