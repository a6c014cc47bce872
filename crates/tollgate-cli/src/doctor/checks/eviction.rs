//! Whether the server forgets counters when its memory is full.

use tollgate_backend::Info;

use super::{Finding, Level};

const CHECK: &str = "eviction";

const REMEDY: &str = "CONFIG SET maxmemory-policy noeviction, and the same in its configuration; \
    counters expire by themselves";

pub(super) fn check(info: &Info) -> Option<Finding> {
    let policy = info.field("maxmemory_policy")?;
    let evicted = info.number("evicted_keys").unwrap_or(0);
    if policy != "noeviction" {
        // Every counter expires, so the volatile policies choose among them as well.
        let what = if evicted > 0 {
            format!("{policy}: {evicted} keys were evicted, and each began its window anew")
        } else {
            format!("{policy}: when memory is full, a counter that is evicted begins anew")
        };
        return Some(Finding::of(CHECK, Level::Problem, what, REMEDY));
    }
    if evicted > 0 {
        return Some(Finding::of(
            CHECK,
            Level::Advice,
            format!("noeviction now, but {evicted} keys were evicted since the server started"),
            "nothing: CONFIG RESETSTAT sets the count to 0",
        ));
    }
    Some(Finding::ok(CHECK, "noeviction"))
}
