//! Tests of simulated worlds: the first seeds, seeds that once failed, and replays.

mod detection;
mod page;
mod regressions;
mod replay;
mod worlds;

use tollgate_sim::plan::{FIRST_OF_ALL, FIRST_OF_FOURTH, FIRST_OF_THIRD};
use tollgate_sim::{Kind, Plan};

/// Returns the first worlds of a kind.
fn worlds_of(kind: Kind, count: usize) -> impl Iterator<Item = Plan> {
    let from = match kind {
        _ if Kind::THIRD.contains(&kind) => FIRST_OF_THIRD,
        _ if Kind::FOURTH.contains(&kind) => FIRST_OF_FOURTH,
        _ => FIRST_OF_ALL,
    };
    (from..).map(Plan::of).filter(move |plan| plan.kind == kind).take(count)
}
