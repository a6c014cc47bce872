//! The checks, each pure: from what servers told to what is to be said of it.

mod access;
mod clock;
mod eviction;
mod expiry;
mod memcached;
mod memory;
mod persistence;
mod replication;
mod shards;
mod version;

use tollgate::core::Timestamp;
use tollgate_backend::{Info, Inspected, Inspection, Role};

use super::{Finding, Level};

pub(super) use memcached::of_memcached;
pub(super) use shards::of_shards;

/// What one server's own words show, when this machine's clock showed `now` before it was asked.
pub(super) fn of_server(server: &Inspected, now: Timestamp) -> Vec<Finding> {
    let about = match server.role {
        Role::DataServer => format!("{} {}", server.shard, server.address),
        Role::Sentinel => format!("{} sentinel {}", server.shard, server.address),
    };
    let findings = match &server.told {
        Err(error) => vec![Finding::of(
            "reach",
            Level::Problem,
            error.to_string(),
            "see that it runs, that this machine may reach it, and that user and password fit",
        )],
        Ok(told) if server.role == Role::Sentinel => {
            told.info.iter().flat_map(version::check).collect()
        }
        Ok(told) => of_keeper(told, now),
    };
    findings.into_iter().map(|finding| finding.about(&about)).collect()
}

fn of_keeper(told: &Inspection, now: Timestamp) -> Vec<Finding> {
    let mut findings: Vec<_> = clock::check(told.micros, now).into_iter().collect();
    findings.extend(access::check(told));
    let Some(info) = &told.info else {
        findings.push(Finding::of(
            "info",
            Level::Warning,
            "INFO is not permitted, so most cannot be checked",
            "grant the user +info, as deploy/redis-acl.txt does",
        ));
        return findings;
    };
    let checks: [fn(&Info) -> Option<Finding>; 5] =
        [version::check, eviction::check, expiry::check, memory::check, replication::check];
    findings.extend(checks.iter().filter_map(|check| check(info)));
    findings.extend(persistence::check(info, told.save.as_deref()));
    findings
}

#[cfg(test)]
mod tests;
