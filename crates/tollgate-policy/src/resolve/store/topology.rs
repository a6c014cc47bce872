//! Converts the keys of a shard to its topology: the way in which its servers are found.

use std::collections::HashMap;

use super::server::{ResolvedServer, ServerTransport, sentinel, server};
use crate::decode::{Field, Named, OneOrMore, Spanned, Text, is_name, quoted};
use crate::raw::{Shard, TopologyKind};
use crate::report::Report;
use crate::settings::{Topology, Transport};

/// The largest number of replicas of a shard. The number is bounded because a node keeps a
/// connection to each replica.
const MAX_REPLICAS: usize = 16;

/// The largest number of sentinels of a shard. The number is bounded because a node keeps a
/// connection to each sentinel.
const MAX_SENTINELS: usize = 16;

/// The largest number of cluster nodes that a policy can list. One listed node that answers is
/// enough to discover the others.
const MAX_NODES: usize = 16;

/// The servers and sentinels that the file has named so far, with their transports.
#[derive(Default)]
pub(super) struct NamedServers {
    pub(super) servers: ServerTransports,
    pub(super) sentinels: ServerTransports,
    /// The number of the line on which the file names a server, or a pair of a sentinel and a
    /// service.
    lines: HashMap<String, usize>,
}

/// A summary of the transports of the connections to several servers.
#[derive(Default)]
pub(super) struct ServerTransports {
    /// Whether any connection uses TLS.
    pub(super) any_tls: bool,
    /// The first server that is reached over the network without TLS, if there is one.
    pub(super) in_clear: Option<RawServer>,
}

/// A server, and the number of the line on which the file names it.
pub(super) struct RawServer {
    pub(super) address: String,
    pub(super) line: usize,
}

/// Returns the topology of a shard, or `None` after reporting a mistake.
pub(super) fn topology(
    named: &Named<Shard>,
    named_servers: &mut NamedServers,
    report: &mut Report<'_>,
) -> Option<Topology> {
    let shard = named.value.as_ref()?;
    match kind(shard)? {
        TopologyKind::Static => {
            foreign(shard.sentinels.given(), "sentinels", "sentinel", report);
            foreign(shard.service.given(), "service", "sentinel", report);
            foreign(shard.transport.given(), "transport", "sentinel", report);
            foreign(shard.nodes.given(), "nodes", "cluster", report);
            fixed(named, shard, named_servers, report)
        }
        TopologyKind::Sentinel => {
            foreign(shard.primary.given(), "primary", "static", report);
            foreign(shard.replicas.given(), "replicas", "static", report);
            foreign(shard.nodes.given(), "nodes", "cluster", report);
            watched(named, shard, named_servers, report)
        }
        TopologyKind::Cluster => {
            foreign(shard.primary.given(), "primary", "static", report);
            foreign(shard.replicas.given(), "replicas", "static", report);
            foreign(shard.sentinels.given(), "sentinels", "sentinel", report);
            foreign(shard.service.given(), "service", "sentinel", report);
            foreign(shard.transport.given(), "transport", "sentinel", report);
            slotted(named, shard, named_servers, report)
        }
    }
}

/// Returns the topology that the shard sets, or the topology that its other keys imply. Returns
/// `None` if the key `topology` has a mistake.
fn kind(shard: &Shard) -> Option<TopologyKind> {
    match &shard.topology {
        Field::Invalid => None,
        Field::Value(given) => Some(given.value.0),
        Field::Absent if !shard.primary.is_absent() => Some(TopologyKind::Static),
        Field::Absent if !shard.nodes.is_absent() => Some(TopologyKind::Cluster),
        Field::Absent if shard.sentinels.is_absent() && shard.service.is_absent() => {
            Some(TopologyKind::Static)
        }
        Field::Absent => Some(TopologyKind::Sentinel),
    }
}

/// Reports a key of a shard, if it is present, because it has an effect only with another topology.
/// `given` is the value of `key`, and `topology` is the topology to which it belongs.
fn foreign<T>(given: Option<&Spanned<T>>, key: &str, topology: &str, report: &mut Report<'_>) {
    if let Some(given) = given {
        let message = format_args!("`{key}` belongs to `topology: {topology}`");
        report.error(
            given.key,
            message,
            "a shard's servers are listed here, announced by sentinels, or discovered from a cluster",
        );
    }
}

/// Returns the topology of a shard with servers that the file lists. Returns `None` after reporting
/// a mistake.
fn fixed(
    named: &Named<Shard>,
    shard: &Shard,
    named_servers: &mut NamedServers,
    report: &mut Report<'_>,
) -> Option<Topology> {
    if shard.primary.is_absent() {
        let hint = "add it, or `sentinels` with their `service`";
        report.error(named.name.at, "a shard needs `primary`", hint);
    }
    let primary = shard.primary.given().and_then(|url| named_servers.server(url, report));
    let replicas = each(&shard.replicas, MAX_REPLICAS, "replicas of one primary", report)
        .map(|urls| urls.iter().map(|url| named_servers.server(url, report)).collect::<Vec<_>>());
    Some(Topology::Static {
        primary: primary?,
        replicas: replicas?.into_iter().collect::<Option<_>>()?,
    })
}

/// Returns the topology of a shard that is a Redis Cluster. Returns `None` after reporting a
/// mistake.
fn slotted(
    named: &Named<Shard>,
    shard: &Shard,
    named_servers: &mut NamedServers,
    report: &mut Report<'_>,
) -> Option<Topology> {
    let nodes = match each(&shard.nodes, MAX_NODES, "nodes of one cluster", report)? {
        [] => {
            let hint = "such as nodes: [\"redis://10.0.0.1:7000\"]";
            report.error(named.name.at, "a shard that is a cluster needs `nodes`", hint);
            return None;
        }
        urls => urls,
    };
    let nodes: Vec<_> = nodes.iter().map(|url| named_servers.server(url, report)).collect();
    Some(Topology::Cluster { nodes: nodes.into_iter().collect::<Option<_>>()? })
}

/// Returns the topology of a shard with servers that sentinels announce. Returns `None` after
/// reporting a mistake.
fn watched(
    named: &Named<Shard>,
    shard: &Shard,
    named_servers: &mut NamedServers,
    report: &mut Report<'_>,
) -> Option<Topology> {
    let service = service(named, shard, report);
    let sentinels = match each(&shard.sentinels, MAX_SENTINELS, "sentinels of one shard", report) {
        Some([]) => {
            let hint = "such as sentinels: [\"redis://10.0.0.1:26379\"]";
            report.error(named.name.at, "a shard with sentinels needs `sentinels`", hint);
            None
        }
        urls => urls,
    };
    let service = service?;
    let sentinels: Vec<_> =
        sentinels?.iter().map(|url| named_servers.sentinel(url, service, report)).collect();
    let transport = match &shard.transport {
        Field::Invalid => return None,
        Field::Absent => Transport::default(),
        Field::Value(given) => given.value.0,
    };
    match transport {
        Transport::Tls => named_servers.servers.any_tls = true,
        Transport::Tcp if named_servers.servers.in_clear.is_none() => {
            let (address, line) = (service.0.clone(), named.name.at.line);
            named_servers.servers.in_clear = Some(RawServer { address, line });
        }
        Transport::Tcp => {}
    }
    Some(Topology::Sentinel {
        sentinels: sentinels.into_iter().collect::<Option<_>>()?,
        service: service.0.as_str().into(),
        transport,
    })
}

/// Returns the service name that the sentinels use for the shard. Returns `None` after reporting
/// that it is missing or not valid.
fn service<'s>(
    named: &Named<Shard>,
    shard: &'s Shard,
    report: &mut Report<'_>,
) -> Option<&'s Text> {
    let given = match &shard.service {
        Field::Absent => {
            let hint = "the name in the sentinels' `sentinel monitor`";
            report.error(named.name.at, "a shard with sentinels needs `service`", hint);
            return None;
        }
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    if !is_name(&given.value.0) {
        let message = format_args!("{} is not a service name", quoted(&given.value.0));
        report.error(given.at, message, "sentinels accept letters, digits, `.`, `-` and `_`");
        return None;
    }
    Some(&given.value)
}

/// Returns the URLs in the list `field`, at most `most`. The list is empty if the key is absent.
/// Returns `None` after reporting a mistake, for example that there are too many URLs.
fn each<'u>(
    field: &'u Field<OneOrMore<Text>>,
    most: usize,
    what: &str,
    report: &mut Report<'_>,
) -> Option<&'u [Spanned<Text>]> {
    let given = match field {
        Field::Absent => return Some(&[]),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let urls = &given.value.0;
    if urls.len() > most {
        let message = format_args!("{} {what}", urls.len());
        report.error(given.key, message, format_args!("expected at most {most}"));
        return None;
    }
    Some(urls)
}

impl NamedServers {
    /// Records the server with this URL, and returns the URL. Returns `None` after reporting a
    /// mistake, such as a server that the file already names.
    fn server(&mut self, url: &Spanned<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
        let server = server(url, report)?;
        self.servers.add(&server, url);
        if let Some(line) = self.lines.get(&server.address) {
            let message = format_args!("duplicate server {}", quoted(&server.address));
            let hint = format_args!("first on line {line}; a server belongs to one shard");
            report.error(url.at, message, hint);
            return None;
        }
        self.lines.insert(server.address, url.at.line);
        Some(url.value.0.as_str().into())
    }

    /// Records the sentinel with this URL, and returns the URL. Returns `None` after reporting a
    /// mistake, such as a sentinel that the file already lists for `service`.
    fn sentinel(
        &mut self,
        url: &Spanned<Text>,
        service: &Text,
        report: &mut Report<'_>,
    ) -> Option<Box<str>> {
        let sentinel = sentinel(url, report)?;
        self.sentinels.add(&sentinel, url);
        // The address of a server contains no space, so different pairs of an address and a service
        // have different texts.
        let requested = format!("{} {}", sentinel.address, service.0);
        if let Some(line) = self.lines.get(&requested) {
            let (address, service) = (quoted(&sentinel.address), quoted(&service.0));
            let message = format_args!("duplicate sentinel {address} for {service}");
            let hint = format_args!("first on line {line}; a service is one shard");
            report.error(url.at, message, hint);
            return None;
        }
        self.lines.insert(requested, url.at.line);
        Some(url.value.0.as_str().into())
    }
}

impl ServerTransports {
    fn add(&mut self, server: &ResolvedServer, url: &Spanned<Text>) {
        self.any_tls |= server.way == ServerTransport::Tls;
        if server.way == ServerTransport::Plain && self.in_clear.is_none() {
            self.in_clear = Some(RawServer { address: server.address.clone(), line: url.at.line });
        }
    }
}
