//! Checks whether the server evicts counters when its memory is full.

use tollgate_backend::Info;

use super::{Finding, Level};

const CHECK: &str = "eviction";

const REMEDY: &str = "CONFIG SET maxmemory-policy noeviction, and the same in its configuration; \
    counters expire by themselves";

pub(super) fn check(info: &Info) -> Option<Finding> {
    let policy = info.field("maxmemory_policy")?;
    let evicted = info.number("evicted_keys").unwrap_or(0);
    if policy != "noeviction" {
        // Every counter expires, so the policies for keys that expire (`volatile-…`) also evict
        // every counter.
        let what = if evicted > 0 {
            format!("{policy}: {evicted} keys were evicted; their counters started from zero")
        } else {
            format!("{policy}: when memory is full, evicted counters start from zero")
        };
        return Some(Finding::of(CHECK, Level::Problem, what, REMEDY));
    }
    if evicted > 0 {
        return Some(Finding::of(
            CHECK,
            Level::Advice,
            format!(
                "noeviction is set now, but {evicted} keys were evicted since the server started"
            ),
            "no action needed: CONFIG RESETSTAT resets this number",
        ));
    }
    Some(Finding::ok(CHECK, "noeviction"))
}
