//! The checks. Each check is a pure function from a server's statistics to findings.

mod access;
mod clock;
mod deadline;
mod eviction;
mod expiry;
mod memcached;
mod memory;
mod persistence;
mod replication;
mod scripting;
mod shards;
mod version;

use tollgate::model::Timestamp;
use tollgate_backend::{Info, Inspected, Inspection, Role};

use super::{Finding, Level};

pub(super) use deadline::of_deadline;
pub(super) use memcached::of_memcached;
pub(super) use shards::of_shards;

/// Returns the findings about one server. `now` is this machine's time just before the server was
/// asked for its statistics.
pub(super) fn of_server(server: &Inspected, now: Timestamp) -> Vec<Finding> {
    let about = match server.role {
        Role::DataServer => format!("{} {}", server.shard, server.address),
        Role::Sentinel => format!("{} sentinel {}", server.shard, server.address),
    };
    let findings = match &server.report {
        Err(error) => vec![Finding::of(
            "reach",
            Level::Problem,
            error.to_string(),
            "check that it runs, that this machine can reach it, and that user and password are right",
        )],
        Ok(report) if server.role == Role::Sentinel => {
            report.info.iter().flat_map(version::check).collect()
        }
        Ok(report) => of_counter_server(report, now),
    };
    findings.into_iter().map(|finding| finding.about(&about)).collect()
}

fn of_counter_server(report: &Inspection, now: Timestamp) -> Vec<Finding> {
    let mut findings: Vec<_> = clock::check(report.micros, now).into_iter().collect();
    findings.extend(access::check(report));
    let Some(info) = &report.info else {
        findings.push(Finding::of(
            "info",
            Level::Warning,
            "INFO is not permitted, so most checks are skipped",
            "grant the user +info, as deploy/redis-acl.txt does",
        ));
        return findings;
    };
    let checks: [fn(&Info) -> Option<Finding>; 5] =
        [version::check, eviction::check, expiry::check, memory::check, replication::check];
    findings.extend(checks.iter().filter_map(|check| check(info)));
    findings.extend(persistence::check(info, report.save.as_deref()));
    findings
}

#[cfg(test)]
mod tests;
