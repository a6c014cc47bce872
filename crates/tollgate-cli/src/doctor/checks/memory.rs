//! Checks that the server has free memory.

use tollgate_backend::Info;

use super::{Finding, Level};

const CHECK: &str = "memory";

/// The percentage of `maxmemory` from which on a finding is reported.
const NEARLY_FULL: u64 = 80;

pub(super) fn check(info: &Info) -> Option<Finding> {
    let used = info.number("used_memory")?;
    let most = info.number("maxmemory").filter(|most| *most > 0);
    let Some(most) = most.or_else(|| info.number("total_system_memory")) else {
        return Some(Finding::ok(CHECK, mebibytes(used)));
    };
    let percent = used.saturating_mul(100) / most.max(1);
    if percent < NEARLY_FULL {
        return Some(Finding::ok(CHECK, format!("{} of {}", mebibytes(used), mebibytes(most))));
    }
    Some(Finding::of(
        CHECK,
        Level::Warning,
        format!("{} of {} used, {percent} %", mebibytes(used), mebibytes(most)),
        "when it is full, new counters are refused: increase maxmemory, or add a shard",
    ))
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
