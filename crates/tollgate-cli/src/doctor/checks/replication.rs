//! Checks that replicas follow the primary, and how the primary behaves if they do not.

use tollgate_backend::{Info, part};

use super::{Finding, Level};

const CHECK: &str = "replication";

/// The number of seconds without a message of a replica from which on a finding is reported. A
/// replica sends a message every second.
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
            "a primary without replicas: if it fails, its counters are lost",
            "add a replica, and sentinels to promote it",
        );
    }
    let lagging: Vec<_> = replicas.iter().filter(|(_, fields)| !is_in_step(fields)).collect();
    if !lagging.is_empty() {
        return Finding::of(
            CHECK,
            Level::Warning,
            format!("{} of {} replicas are behind", lagging.len(), replicas.len()),
            "check their logs and the network: charges that they have not received are lost if the primary fails",
        );
    }
    // The field is present only if min-replicas-to-write is set.
    if info.field("min_slaves_good_slaves").is_none() {
        return Finding::of(
            CHECK,
            Level::Advice,
            format!(
                "{} in sync, but a primary that is cut off from them still accepts charges",
                count(&replicas)
            ),
            "CONFIG SET min-replicas-to-write 1 bounds what a failover loses; while no replica is connected, on_failure decides",
        );
    }
    Finding::ok(CHECK, format!("{} in sync", count(&replicas)))
}

fn of_replica(info: &Info) -> Finding {
    if info.field("master_link_status") == Some("up") {
        return Finding::ok(CHECK, "a replica in sync with its primary");
    }
    Finding::of(
        CHECK,
        Level::Warning,
        "a replica without a connection to its primary",
        "check its log: until it follows again, it cannot replace its primary without losing counters",
    )
}

fn count(replicas: &[(&str, &str)]) -> String {
    match replicas.len() {
        1 => "one replica".to_owned(),
        several => format!("{several} replicas"),
    }
}

/// Returns whether `name` is the name of a replica's line, such as `slave0`, and not of another
/// line, such as `slave_repl_offset`.
fn is_replica(name: &str) -> bool {
    name.strip_prefix("slave").is_some_and(|number| number.parse::<u32>().is_ok())
}

fn is_in_step(fields: &str) -> bool {
    let lag = part(fields, "lag").and_then(|lag| lag.parse().ok()).unwrap_or(u64::MAX);
    part(fields, "state") == Some("online") && lag < SILENT
}
