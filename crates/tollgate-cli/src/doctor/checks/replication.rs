//! Whether replicas follow, and what happens when they do not.

use tollgate_backend::{Info, part};

use super::{Finding, Level};

const CHECK: &str = "replication";

/// From where on a replica's silence is told, in seconds; it speaks every second.
const SILENT: u64 = 3;

pub(super) fn check(info: &Info) -> Option<Finding> {
    match info.field("role")? {
        "master" => Some(of_primary(info)),
        _ => Some(of_replica(info)),
    }
}

fn of_primary(info: &Info) -> Finding {
    let replicas: Vec<_> = info.fields("slave").filter(|(name, _)| is_replica(name)).collect();
    if replicas.is_empty() {
        return Finding::of(
            CHECK,
            Level::Advice,
            "a primary without replicas: when it dies, its windows begin anew",
            "add a replica, and sentinels that promote it",
        );
    }
    let lagging: Vec<_> = replicas.iter().filter(|(_, told)| !is_in_step(told)).collect();
    if !lagging.is_empty() {
        return Finding::of(
            CHECK,
            Level::Warning,
            format!("{} of {} replicas are behind", lagging.len(), replicas.len()),
            "see their logs and the network between: what they lack is lost with the primary",
        );
    }
    // Told only where min-replicas-to-write is set.
    if info.field("min_slaves_good_slaves").is_none() {
        return Finding::of(
            CHECK,
            Level::Advice,
            format!(
                "{} in step, but cut off from them it goes on taking charges",
                count(&replicas)
            ),
            "CONFIG SET min-replicas-to-write 1 bounds what a failover loses; while no replica is \
             there, on_failure decides instead",
        );
    }
    Finding::ok(CHECK, format!("{} in step", count(&replicas)))
}

fn of_replica(info: &Info) -> Finding {
    if info.field("master_link_status") == Some("up") {
        return Finding::ok(CHECK, "a replica in step with its primary");
    }
    Finding::of(
        CHECK,
        Level::Warning,
        "a replica that has lost its primary",
        "see its log; until it follows again, nothing can be promoted in its primary's place",
    )
}

fn count(replicas: &[(&str, &str)]) -> String {
    match replicas.len() {
        1 => "one replica".to_owned(),
        several => format!("{several} replicas"),
    }
}

/// `slave0`, and not `slave_repl_offset`.
fn is_replica(name: &str) -> bool {
    name.strip_prefix("slave").is_some_and(|number| number.parse::<u32>().is_ok())
}

fn is_in_step(told: &str) -> bool {
    let lag = part(told, "lag").and_then(|lag| lag.parse().ok()).unwrap_or(u64::MAX);
    part(told, "state") == Some("online") && lag < SILENT
}
