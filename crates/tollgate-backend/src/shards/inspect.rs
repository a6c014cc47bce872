//! Queries of the servers behind a policy's shards.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_policy::RedisSettings;
use tollgate_redis::{Credentials, Endpoint, Inspection, LinkError, Tls, Topology};

use crate::settings::OpenError;
use crate::settings::endpoints::{ConnectTarget, reached};
use crate::status::ShardStatus;

/// The role of a server in a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The server contains counters.
    DataServer,
    /// The server is a sentinel.
    Sentinel,
}

/// A server, and the server's report about itself.
#[derive(Debug)]
pub struct Inspected {
    /// The shard that the server belongs to.
    pub shard: Box<str>,
    /// The address of the server, without user and password.
    pub address: String,
    /// Whether the server contains counters or is a sentinel.
    pub role: Role,
    /// The report of the server, or the error of the query.
    pub report: Result<Inspection, LinkError>,
}

/// Queries all servers of `redis` concurrently, each for at most `within`. The servers are the
/// servers in the settings and the servers that `shards` report. Returns the results in the order
/// of the shards.
///
/// # Errors
/// [`OpenError`] if the settings name no server.
pub async fn inspect(
    redis: &RedisSettings,
    shards: &[ShardStatus],
    within: Duration,
) -> Result<Vec<Inspected>, OpenError> {
    let mut queries = JoinSet::new();
    for (index, shard) in redis.shards.iter().enumerate() {
        let found = shards.iter().find(|status| status.name == shard.name);
        let found = found.into_iter().flat_map(|status| &status.batchers);
        let found: Vec<_> = found.filter_map(|batcher| batcher.address.clone()).collect();
        for (role, endpoint) in endpoints(reached(redis, shard)?, &found) {
            let shard = shard.name.clone();
            queries.spawn(async move {
                let report = tollgate_redis::inspect(&endpoint, within).await;
                let address = endpoint.to_string();
                (index, Inspected { shard, address, role, report })
            });
        }
    }
    let mut reports = queries.join_all().await;
    reports.sort_by(|(index, one), (other_place, other)| {
        (index, one.role, &one.address).cmp(&(other_place, other.role, &other.address))
    });
    Ok(reports.into_iter().map(|(_, inspected)| inspected).collect())
}

/// Returns each server of the settings and each server in `found`, without duplicates.
fn endpoints(reached: ConnectTarget, found: &[String]) -> Vec<(Role, Endpoint)> {
    let (sentinels, named, template) = match reached {
        ConnectTarget::Cluster(cluster) => {
            let template = cluster.seeds.first().map(EndpointTemplate::endpoint);
            (Vec::new(), cluster.seeds, template)
        }
        ConnectTarget::Servers(servers) => match servers.topology {
            Topology::Static { primary, replicas } => {
                let template = EndpointTemplate::endpoint(&primary);
                let named = std::iter::once(primary).chain(replicas).collect();
                (Vec::new(), named, Some(template))
            }
            Topology::Sentinel(sentinels) => {
                let access = sentinels.servers;
                let template =
                    EndpointTemplate { credentials: access.credentials, tls: access.tls };
                (sentinels.sentinels, Vec::new(), Some(template))
            }
        },
    };
    let found = found.iter().filter_map(|address| template.as_ref()?.at(address));
    let mut seen = BTreeSet::new();
    let data_servers = named.into_iter().chain(found).map(|endpoint| (Role::DataServer, endpoint));
    let sentinels = sentinels.into_iter().map(|endpoint| (Role::Sentinel, endpoint));
    data_servers
        .chain(sentinels)
        .filter(|(_, endpoint)| seen.insert(endpoint.to_string()))
        .collect()
}

/// The user and the certificates for servers that another server reported.
struct EndpointTemplate {
    credentials: Credentials,
    tls: Option<Tls>,
}

impl EndpointTemplate {
    fn endpoint(endpoint: &Endpoint) -> Self {
        let tls = match &endpoint.address {
            tollgate_redis::Address::Tcp { tls, .. } => tls.clone(),
            tollgate_redis::Address::Unix(_) => None,
        };
        Self { credentials: endpoint.credentials.clone(), tls }
    }

    fn at(&self, address: &str) -> Option<Endpoint> {
        let endpoint: Endpoint = address.parse().ok()?;
        let endpoint = endpoint.with_credentials(self.credentials.clone());
        match (&endpoint.address, &self.tls) {
            (tollgate_redis::Address::Tcp { tls: Some(_), .. }, Some(tls)) => {
                endpoint.with_tls(tls.clone()).ok()
            }
            _ => Some(endpoint),
        }
    }
}
