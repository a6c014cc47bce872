//! Describes the memcached store of a policy in words, for `tollgate check`.

use crate::settings::{MemcachedLayout, MemcachedSettings};

/// The largest number of servers that the description names.
const MAX_NAMED: usize = 8;

/// Returns the rows that describe a memcached store. Each row has a title and a description.
pub(crate) fn rows(memcached: &MemcachedSettings) -> Vec<(&'static str, String)> {
    let layout = match memcached.layout {
        MemcachedLayout::Cell => "each limit as one item",
        MemcachedLayout::Pairs => "fixed windows as a count and a reset time",
    };
    let outage = match memcached.nodes.get() {
        1 => "while a server is down, this node admits the whole of each limit".to_owned(),
        nodes => format!("while a server is down, this node admits 1/{nodes} of each limit"),
    };
    let mut rows = vec![
        ("memcached", servers(&memcached.servers)),
        ("layout", layout.to_owned()),
        ("decision", format!("within {}ms, by this node's clock", memcached.deadline.as_millis())),
        ("outage", outage),
        (
            "memory",
            "a server without free memory evicts counters, which then start from zero".to_owned(),
        ),
    ];
    if !memcached.revealed.is_empty() {
        rows.push((
            "revealed",
            format!("subjects of {} are readable in item names", memcached.revealed.join(", ")),
        ));
    }
    rows
}

fn servers(servers: &[Box<str>]) -> String {
    let many = if servers.len() == 1 { "server" } else { "servers" };
    let mut named: Vec<&str> = servers.iter().take(MAX_NAMED).map(|server| &**server).collect();
    if servers.len() > MAX_NAMED {
        named.push("…");
    }
    format!("{} {many} ({})", servers.len(), named.join(", "))
}
