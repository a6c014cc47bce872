//! Shards and their servers.

use std::collections::HashMap;

use super::at_most;
use super::server::{Way, server};
use crate::read::{Field, Given, Named, Names, Text, quoted};
use crate::report::Report;
use crate::settings::ShardSettings;
use crate::written;

/// The most shards: every decision looks at each of them.
const MAX_SHARDS: usize = 1_024;

/// The largest weight of a shard.
const MAX_WEIGHT: u32 = 1 << 20;

/// The most replicas of a shard: a node keeps a connection to each.
const MAX_REPLICAS: usize = 16;

/// The shards of a store.
pub(super) struct Shards {
    pub(super) shards: Vec<ShardSettings>,
    /// Whether any of their servers is spoken to under TLS.
    pub(super) any_tls: bool,
    /// The first of them that is spoken to in clear over the network.
    pub(super) in_clear: Option<Written>,
}

/// A server, and the line on which it is named.
pub(super) struct Written {
    pub(super) place: String,
    pub(super) line: usize,
}

/// The shards in their order; `None` if something is wrong, which is reported.
pub(super) fn shards(
    field: &Field<Names<written::Shard>>,
    report: &mut Report<'_>,
) -> Option<Shards> {
    let given = field.given()?;
    let named = &given.value.0;
    if named.is_empty() {
        let hint = "such as a: { primary: \"redis://10.0.0.1:6379\" }";
        report.mistake(given.key, "there is no shard", hint);
        return None;
    }
    if named.len() > MAX_SHARDS {
        let message = format_args!("{} shards", named.len());
        report.mistake(given.key, message, format_args!("expected at most {MAX_SHARDS}"));
        return None;
    }
    let mut servers = Servers::default();
    let shards: Vec<_> = named.iter().map(|named| shard(named, &mut servers, report)).collect();
    let shards = shards.into_iter().collect::<Option<_>>()?;
    Some(Shards { shards, any_tls: servers.any_tls, in_clear: servers.in_clear })
}

fn shard(
    named: &Named<written::Shard>,
    servers: &mut Servers,
    report: &mut Report<'_>,
) -> Option<ShardSettings> {
    let shard = named.value.as_ref()?;
    let primary = shard.primary.given().and_then(|url| servers.add(url, report));
    let replicas = match &shard.replicas {
        Field::Absent => Some(Vec::new()),
        Field::Wrong => None,
        Field::Given(given) if given.value.0.len() > MAX_REPLICAS => {
            let message = format_args!("{} replicas of one primary", given.value.0.len());
            report.mistake(given.key, message, format_args!("expected at most {MAX_REPLICAS}"));
            None
        }
        Field::Given(given) => {
            let urls: Vec<_> = given.value.0.iter().map(|url| servers.add(url, report)).collect();
            urls.into_iter().collect()
        }
    };
    let weight = at_most(&shard.weight, MAX_WEIGHT, "the weight is", report);
    Some(ShardSettings {
        name: named.name.value.as_str().into(),
        primary: primary?,
        replicas: replicas?,
        weight: weight?,
    })
}

/// The servers that were named so far.
#[derive(Default)]
struct Servers {
    /// The line of each.
    lines: HashMap<String, usize>,
    any_tls: bool,
    in_clear: Option<Written>,
}

impl Servers {
    /// Checks that `url` names a server, and one that no other does; gives it back.
    fn add(&mut self, url: &Given<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
        let server = server(url, report)?;
        self.any_tls |= server.way == Way::Tls;
        if server.way == Way::Clear && self.in_clear.is_none() {
            self.in_clear = Some(Written { place: server.place.clone(), line: url.at.line });
        }
        if let Some(line) = self.lines.get(&server.place) {
            let message = format_args!("the server {} is there twice", quoted(&server.place));
            let hint = format_args!("first on line {line}; a server has one part in one shard");
            report.mistake(url.at, message, hint);
            return None;
        }
        self.lines.insert(server.place, url.at.line);
        Some(url.value.0.as_str().into())
    }
}
