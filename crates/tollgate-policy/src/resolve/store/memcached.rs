//! Converts the key `memcached` to the settings of the memcached store.

use std::collections::HashSet;

use super::deadline::{MEMCACHED_MIN, deadline};
use super::{at_most, revealed};
use crate::decode::Spanned;
use crate::raw::{Memcached, PolicyFile};
use crate::report::Report;
use crate::settings::MemcachedSettings;

/// The largest number of servers. The number is bounded because every decision compares all servers
/// to find the one that has the counter.
const MAX_SERVERS: usize = 1_024;

/// The largest number of nodes that can share the limits.
const MAX_NODES: u32 = 1_000_000;

/// Returns the settings of the memcached store, or `None` after reporting a mistake.
pub(super) fn settings(
    given: &Spanned<Memcached>,
    file: &PolicyFile,
    report: &mut Report<'_>,
) -> Option<MemcachedSettings> {
    let memcached = &given.value;
    let servers = servers(memcached, report);
    let nodes = at_most(&memcached.nodes, MAX_NODES, "the number of nodes is", report);
    let deadline = deadline(&memcached.deadline, MEMCACHED_MIN, report);
    Some(MemcachedSettings {
        servers: servers?,
        layout: memcached.layout.value().map(|layout| layout.0).unwrap_or_default(),
        nodes: nodes?,
        deadline: deadline?,
        revealed: revealed::names(file),
    })
}

fn servers(memcached: &Memcached, report: &mut Report<'_>) -> Option<Vec<Box<str>>> {
    let given = memcached.servers.given()?;
    let servers = &given.value.0;
    if servers.is_empty() || servers.len() > MAX_SERVERS {
        let message = format_args!("{} servers", servers.len());
        report.error(given.at, message, format_args!("expected 1 to {MAX_SERVERS}"));
        return None;
    }
    let mut observed = HashSet::new();
    let twice = servers.iter().find(|server| !observed.insert(&*server.value.0));
    if let Some(twice) = twice {
        let message = format_args!("duplicate server {:?}", &*twice.value.0);
        report.error(twice.at, message, "remove one of them");
        return None;
    }
    Some(servers.iter().map(|server| Box::from(&*server.value.0)).collect())
}
