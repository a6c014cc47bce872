//! Whether counters outlive a restart of the server.

use tollgate_backend::Info;

use super::{Finding, Level};

const CHECK: &str = "persistence";

/// `save` is when snapshots are taken, where that may be asked.
pub(super) fn check(info: &Info, save: Option<&str>) -> Option<Finding> {
    for (field, what) in [
        ("aof_last_write_status", "the last write to its log failed"),
        ("aof_last_bgrewrite_status", "the last rewrite of its log failed"),
        ("rdb_last_bgsave_status", "its last snapshot failed"),
    ] {
        if info.field(field).is_some_and(|status| status != "ok") {
            return Some(Finding::of(
                CHECK,
                Level::Problem,
                format!("{what}: it may refuse writes, and loses counters when it restarts"),
                "see its log, its disk and vm.overcommit_memory",
            ));
        }
    }
    if info.number("aof_enabled")? == 1 {
        return Some(Finding::ok(CHECK, "a log of every write"));
    }
    let has_replica = info.number("connected_slaves").is_some_and(|count| count > 0)
        || info.field("role") != Some("master");
    match save {
        _ if has_replica => Some(Finding::ok(CHECK, "by replication")),
        Some("") => Some(Finding::of(
            CHECK,
            Level::Advice,
            "neither a log nor snapshots, and no replica: a restart begins every window anew",
            "CONFIG SET appendonly yes, with appendfsync everysec",
        )),
        Some(save) => Some(Finding::ok(CHECK, format!("snapshots ({save})"))),
        None => Some(Finding::ok(CHECK, "no log of every write; snapshots as it is configured")),
    }
}
