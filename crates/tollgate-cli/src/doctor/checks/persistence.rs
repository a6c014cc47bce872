//! Checks whether counters survive a restart of the server.

use tollgate_backend::Info;

use super::{Finding, Level};

const CHECK: &str = "persistence";

/// Checks the persistence of a server. `save` is its snapshot schedule, if Tollgate's user may read
/// it.
pub(super) fn check(info: &Info, save: Option<&str>) -> Option<Finding> {
    for (field, what) in [
        ("aof_last_write_status", "the last write to its append-only file failed"),
        ("aof_last_bgrewrite_status", "the last rewrite of its append-only file failed"),
        ("rdb_last_bgsave_status", "its last snapshot failed"),
    ] {
        if info.field(field).is_some_and(|status| status != "ok") {
            return Some(Finding::of(
                CHECK,
                Level::Problem,
                format!("{what}: it may refuse writes, and a restart loses counters"),
                "check its log, its disk and vm.overcommit_memory",
            ));
        }
    }
    if info.number("aof_enabled")? == 1 {
        return Some(Finding::ok(CHECK, "append-only file"));
    }
    let has_replica = info.number("connected_slaves").is_some_and(|count| count > 0)
        || info.field("role") != Some("master");
    match save {
        _ if has_replica => Some(Finding::ok(CHECK, "by replicas")),
        Some("") => Some(Finding::of(
            CHECK,
            Level::Advice,
            "no append-only file, no snapshots and no replica: a restart loses all counters",
            "enable it: CONFIG SET appendonly yes, with appendfsync everysec",
        )),
        Some(save) => Some(Finding::ok(CHECK, format!("snapshots ({save})"))),
        None => {
            Some(Finding::ok(CHECK, "no append-only file; snapshots depend on its configuration"))
        }
    }
}
