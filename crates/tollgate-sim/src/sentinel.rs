//! The model of a sentinel: its reports about the shards, and the events that it sends.

use crate::plan::{Plan, shard_name};
use crate::server::Reply;

/// The port of every server.
const SERVER_PORT: u16 = 6_379;

/// A simulated sentinel.
#[derive(Debug)]
pub(crate) struct Sentinel {
    shards: Vec<ShardReport>,
}

/// The report of a sentinel about one shard.
#[derive(Debug)]
struct ShardReport {
    /// The host names of the shard's servers.
    servers: Vec<String>,
    /// The index of the primary in `servers`.
    primary: usize,
    /// The configuration epoch. It grows with each promotion.
    epoch: u64,
    /// Whether the sentinel reports that the primary may be down.
    is_in_doubt: bool,
}

impl Sentinel {
    /// Creates a sentinel that reports the primaries with which `plan` begins.
    pub(crate) fn new(plan: &Plan) -> Self {
        let report = |shard| {
            let servers = plan.servers().filter(|place| place.shard == shard);
            let servers = servers.map(|place| place.name()).collect();
            ShardReport { servers, primary: 0, epoch: 1, is_in_doubt: false }
        };
        Self { shards: (0..plan.shards).map(report).collect() }
    }

    /// Makes the sentinel report `primary` as the primary of a shard. Returns the name of the event
    /// that the sentinel sends.
    pub(crate) fn name(&mut self, shard: usize, primary: &str) -> &'static str {
        let report = &mut self.shards[shard];
        if let Some(place) = report.servers.iter().position(|server| server == primary) {
            report.primary = place;
        }
        report.epoch += 1;
        report.is_in_doubt = false;
        "+switch-master"
    }

    /// Makes the sentinel report whether the primary of a shard may be down. Returns the name of
    /// the event that the sentinel sends.
    pub(crate) fn doubt(&mut self, shard: usize, is_in_doubt: bool) -> &'static str {
        self.shards[shard].is_in_doubt = is_in_doubt;
        if is_in_doubt { "+odown" } else { "-odown" }
    }

    /// Answers a command with one or several replies.
    pub(crate) fn answer(&self, args: &[&[u8]]) -> Vec<Reply> {
        let args: Vec<_> = args.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let args: Vec<&str> = args.iter().map(|word| &**word).collect();
        match args.as_slice() {
            ["HELLO", ..] => vec![fields(&[("server", "redis"), ("mode", "sentinel")])],
            ["CLIENT", ..] => vec![Reply::Status("OK")],
            ["SUBSCRIBE", channels @ ..] => {
                let push = |(number, channel): (i64, &&str)| {
                    let args = [Reply::text("subscribe"), Reply::text(*channel)];
                    Reply::Push(args.into_iter().chain([Reply::Number(number)]).collect())
                };
                (1..).zip(channels).map(push).collect()
            }
            ["SENTINEL", question, service] => vec![self.report(question, service)],
            _ => vec![Reply::error("ERR unknown command")],
        }
    }

    fn report(&self, question: &str, service: &str) -> Reply {
        let mut named = self.shards.iter().enumerate();
        let found = named.find(|(shard, _)| service == shard_name(*shard).to_string());
        let Some((_, report)) = found else { return Reply::Nil };
        let port = SERVER_PORT.to_string();
        match question {
            "GET-MASTER-ADDR-BY-NAME" => {
                Reply::List(vec![Reply::text(&*report.servers[report.primary]), Reply::text(port)])
            }
            "MASTER" => fields(&[
                ("name", service),
                ("flags", if report.is_in_doubt { "s_down,o_down,master" } else { "master" }),
                ("config-epoch", &report.epoch.to_string()),
            ]),
            "REPLICAS" => {
                let servers = report.servers.iter().enumerate();
                let replicas = servers.filter(|(index, _)| *index != report.primary);
                Reply::List(
                    replicas.map(|(_, name)| fields(&[("ip", name), ("port", &port)])).collect(),
                )
            }
            // Nodes need no further sentinels, because the policy lists all of them.
            _ => Reply::List(Vec::new()),
        }
    }
}

/// Returns names and values as a flat list, which clients also accept in place of a map.
fn fields(fields: &[(&str, &str)]) -> Reply {
    Reply::List(fields.iter().flat_map(|(name, value)| [*name, *value]).map(Reply::text).collect())
}
