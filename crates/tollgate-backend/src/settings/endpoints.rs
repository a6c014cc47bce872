//! Conversion of a shard's servers from the settings of the policy file to the settings of the
//! store.

use std::fs::File;
use std::path::Path;
use std::{env, io};

use tollgate_policy::{
    KeySource, ReadFrom, RedisSettings, ShardSettings, StepForm, TlsFiles, Topology, Transport,
};
use tollgate_redis::{
    Address, ClusterSettings, Credentials, Endpoint, LinkLimits, RuntimeChoice, SecretSource,
    Sentinels, ServerAccess, ShardSettings as Servers, Tls,
};

use super::error::OpenError;
use super::secret_error::SecretError;

/// The connection settings of a shard.
#[derive(Debug)]
pub(crate) enum ConnectTarget {
    /// A primary with its replicas, or the sentinels that report the addresses of the primary and
    /// its replicas.
    Servers(Box<Servers>),
    /// Some nodes of a cluster, which report the other nodes.
    Cluster(Box<ClusterSettings>),
}

/// Returns the servers of `shard`, or the sentinels or cluster nodes that report the servers. Every
/// server has the user and the certificates that `redis` configures for all servers.
///
/// # Errors
/// [`OpenError::Endpoint`] for the first text that is not a server's URL.
pub(crate) fn reached(
    redis: &RedisSettings,
    shard: &ShardSettings,
) -> Result<ConnectTarget, OpenError> {
    let topology = match &shard.topology {
        Topology::Cluster { nodes } => {
            return Ok(ConnectTarget::Cluster(Box::new(cluster(redis, shard, nodes)?)));
        }
        Topology::Static { primary, replicas } => {
            let login = LoginDefaults::of_servers(redis);
            let replicas = replicas.iter().map(|url| login.endpoint(url, shard, "replicas"));
            tollgate_redis::Topology::Static {
                primary: login.endpoint(primary, shard, "primary")?,
                replicas: replicas.collect::<Result<_, _>>()?,
            }
        }
        Topology::Sentinel { sentinels, service, transport } => {
            let (login, own) =
                (LoginDefaults::of_sentinels(redis), LoginDefaults::of_servers(redis));
            let sentinels = sentinels.iter().map(|url| login.endpoint(url, shard, "sentinels"));
            tollgate_redis::Topology::Sentinel(Sentinels {
                sentinels: sentinels.collect::<Result<_, _>>()?,
                service: service.to_string(),
                servers: ServerAccess {
                    credentials: own.credentials(),
                    tls: match transport {
                        Transport::Tcp => None,
                        Transport::Tls => Some(tls(own.tls)),
                    },
                    ..ServerAccess::default()
                },
            })
        }
    };
    Ok(ConnectTarget::Servers(Box::new(Servers {
        reads: reads(redis.reads),
        link: LinkLimits::for_deadline(redis.deadline),
        ..Servers::of(topology)
    })))
}

/// Returns the settings of the cluster `shard` with the nodes at the URLs `nodes`.
fn cluster(
    redis: &RedisSettings,
    shard: &ShardSettings,
    nodes: &[Box<str>],
) -> Result<ClusterSettings, OpenError> {
    let login = LoginDefaults::of_servers(redis);
    let seeds = nodes.iter().map(|url| login.endpoint(url, shard, "nodes"));
    let mut settings = ClusterSettings::new(seeds.collect::<Result<Vec<_>, _>>()?);
    settings.reads = reads(redis.reads);
    settings.link = LinkLimits::for_deadline(redis.deadline);
    Ok(settings)
}

/// Checks that the files and environment variables exist which each new connection reads.
///
/// # Errors
/// [`OpenError`] for the first missing file or variable.
pub(crate) fn check_sources(redis: &RedisSettings) -> Result<(), OpenError> {
    check_password("store.redis.password", redis.password.as_ref())?;
    check_password("store.redis.sentinel.password", redis.sentinel.password.as_ref())?;
    let [own, sentinels] = [&redis.tls, &redis.sentinel.tls];
    let identities = [own.identity.as_ref(), sentinels.identity.as_ref()];
    let certificates = identities.map(|identity| identity.map(|identity| &*identity.certificate));
    let keys = identities.map(|identity| identity.map(|identity| &*identity.key));
    let files = [
        ("store.redis.tls.ca", own.authorities.as_deref()),
        ("store.redis.tls.certificate", certificates[0]),
        ("store.redis.tls.key", keys[0]),
        ("store.redis.sentinel.tls.ca", sentinels.authorities.as_deref()),
        ("store.redis.sentinel.tls.certificate", certificates[1]),
        ("store.redis.sentinel.tls.key", keys[1]),
    ];
    for (key, path) in files {
        let Some(path) = path else { continue };
        open(path).map_err(|error| OpenError::Certificates {
            key,
            path: path.to_owned(),
            error,
        })?;
    }
    Ok(())
}

fn check_password(key: &'static str, source: Option<&KeySource>) -> Result<(), OpenError> {
    let secret = |error| OpenError::Secret { key, error };
    match source {
        Some(KeySource::Environment { name }) => {
            env::var(name)
                .map_err(|error| secret(SecretError::Environment { name: name.clone(), error }))?;
        }
        Some(KeySource::File { path }) => {
            open(path).map_err(|error| secret(SecretError::File { path: path.clone(), error }))?;
        }
        Some(KeySource::Random) | None => {}
    }
    Ok(())
}

const fn reads(reads: ReadFrom) -> tollgate_redis::ReadFrom {
    match reads {
        ReadFrom::Replicas => tollgate_redis::ReadFrom::Replicas,
        ReadFrom::Primaries => tollgate_redis::ReadFrom::Primary,
    }
}

/// Returns the runtime of the decision step (module, function or script) that the setting `step`
/// selects.
pub(crate) const fn choice(step: StepForm) -> RuntimeChoice {
    match step {
        StepForm::Automatic => RuntimeChoice::Best,
        StepForm::Tables => RuntimeChoice::Tables,
        StepForm::Function => RuntimeChoice::Function,
        StepForm::Script => RuntimeChoice::Script,
    }
}

/// The user, password and certificates of servers with URLs that contain no user and password.
struct LoginDefaults<'s> {
    user: Option<&'s str>,
    password: Option<&'s KeySource>,
    tls: &'s TlsFiles,
}

impl<'s> LoginDefaults<'s> {
    fn of_servers(redis: &'s RedisSettings) -> Self {
        Self { user: redis.user.as_deref(), password: redis.password.as_ref(), tls: &redis.tls }
    }

    fn of_sentinels(redis: &'s RedisSettings) -> Self {
        let sentinel = &redis.sentinel;
        let password = sentinel.password.as_ref();
        Self { user: sentinel.user.as_deref(), password, tls: &sentinel.tls }
    }

    fn credentials(&self) -> Credentials {
        let password = match self.password {
            Some(KeySource::Environment { name }) => Some(SecretSource::Env(name.clone())),
            Some(KeySource::File { path }) => Some(SecretSource::File(path.clone())),
            // A random password cannot match the server's password.
            Some(KeySource::Random) | None => None,
        };
        Credentials { user: self.user.map(str::to_owned), password }
    }

    /// Returns the endpoint of the server at `url`, which is the value of `key` in `shard`.
    fn endpoint(&self, url: &str, shard: &ShardSettings, key: &str) -> Result<Endpoint, OpenError> {
        self.try_endpoint(url).map_err(|error| OpenError::Endpoint {
            key: format!("store.redis.shards.{}.{key}", shard.name),
            error,
        })
    }

    fn try_endpoint(&self, url: &str) -> Result<Endpoint, tollgate_redis::EndpointError> {
        let endpoint: Endpoint = url.parse()?;
        // The user and password in a server's URL take precedence over the common user and
        // password.
        let (own, shared) = (endpoint.credentials.clone(), self.credentials());
        let endpoint = endpoint.with_credentials(Credentials {
            user: own.user.or(shared.user),
            password: own.password.or(shared.password),
        });
        match &endpoint.address {
            Address::Tcp { tls: Some(_), .. } => endpoint.with_tls(tls(self.tls)),
            Address::Tcp { tls: None, .. } | Address::Unix(_) => Ok(endpoint),
        }
    }
}

fn tls(files: &TlsFiles) -> Tls {
    let client = files.identity.as_ref();
    Tls {
        authorities: files.authorities.clone(),
        client: client.map(|identity| (identity.certificate.clone(), identity.key.clone())),
        server_name: None,
    }
}

/// Opens the file to check that the file can be read. Each connection reads the content again.
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use tollgate_policy::{SentinelAccess, TlsIdentity};
    use tollgate_redis::Secret;

    use super::*;

    /// Returns the settings of shards with these names. The address of each shard's server contains
    /// the index of the shard.
    pub(crate) fn redis(names: &[&str]) -> RedisSettings {
        let shard = |(index, name): (usize, &&str)| ShardSettings {
            name: (*name).into(),
            topology: Topology::Static {
                primary: format!("redis://10.0.0.{index}").into(),
                replicas: vec![format!("rediss://10.0.1.{index}:7000").into()],
            },
            weight: NonZeroU32::MIN,
        };
        RedisSettings {
            shards: names.iter().enumerate().map(shard).collect(),
            route_by: None,
            previous: None,
            deadline: Duration::from_millis(15),
            nodes: NonZeroU32::MIN,
            clock: tollgate_policy::DecisionClock::Application,
            reads: ReadFrom::Replicas,
            remember_refusals: tollgate_policy::DenyCacheMode::Enabled,
            step: StepForm::Automatic,
            user: None,
            password: None,
            tls: TlsFiles::default(),
            sentinel: SentinelAccess::default(),
            revealed: Vec::new(),
        }
    }

    /// Returns the first shard of `redis`, with the replica at `url` instead of its replicas.
    fn with_replica(redis: &RedisSettings, url: &str) -> ShardSettings {
        let primary = "redis://10.0.0.0".into();
        let topology = Topology::Static { primary, replicas: vec![url.into()] };
        ShardSettings { topology, ..redis.shards[0].clone() }
    }

    fn servers(redis: &RedisSettings, shard: &ShardSettings) -> Result<Servers, OpenError> {
        match reached(redis, shard)? {
            ConnectTarget::Servers(servers) => Ok(*servers),
            ConnectTarget::Cluster(cluster) => panic!("{cluster:?}"),
        }
    }

    fn named(servers: &Servers) -> (&Endpoint, &[Endpoint]) {
        match &servers.topology {
            tollgate_redis::Topology::Static { primary, replicas } => (primary, replicas),
            tollgate_redis::Topology::Sentinel(_) => panic!("{servers:?}"),
        }
    }

    #[test]
    fn a_server_is_reached_as_its_url_says_or_else_as_all_are() {
        let mut redis = redis(&["a"]);
        redis.user = Some("tollgate".into());
        redis.password = Some(KeySource::Environment { name: "PASSWORD".into() });
        let shard = with_replica(&redis, "redis://reader:secret@10.0.1.0");
        let servers = servers(&redis, &shard).unwrap();
        let (primary, replicas) = named(&servers);
        let shared = SecretSource::Env("PASSWORD".into());
        let all = Credentials { user: Some("tollgate".into()), password: Some(shared) };
        assert_eq!(primary.credentials, all);
        let own = SecretSource::Inline(Secret::new("secret"));
        let own = Credentials { user: Some("reader".into()), password: Some(own) };
        assert_eq!(replicas[0].credentials, own);
    }

    #[test]
    fn certificates_are_for_servers_that_are_asked_for_tls() {
        let mut redis = redis(&["a"]);
        redis.tls.authorities = Some("ca.pem".into());
        let identity = TlsIdentity { certificate: "node.pem".into(), key: "node.key".into() };
        redis.tls.identity = Some(identity);
        let servers = servers(&redis, &redis.shards[0]).unwrap();
        let (primary, replicas) = named(&servers);
        let tls_of = |endpoint: &Endpoint| match &endpoint.address {
            Address::Tcp { tls, .. } => tls.clone(),
            Address::Unix(_) => None,
        };
        assert_eq!(tls_of(primary), None);
        let tls = tls_of(&replicas[0]).unwrap();
        assert_eq!(tls.authorities, Some("ca.pem".into()));
        assert_eq!(tls.client, Some(("node.pem".into(), "node.key".into())));
    }

    #[test]
    fn sentinels_and_servers_are_reached_each_as_is_said_of_them() {
        let mut redis = redis(&["a"]);
        redis.user = Some("tollgate".into());
        redis.tls.authorities = Some("servers.pem".into());
        redis.sentinel = SentinelAccess {
            user: Some("watcher".into()),
            password: Some(KeySource::Environment { name: "WATCHER".into() }),
            tls: TlsFiles { authorities: Some("sentinels.pem".into()), identity: None },
        };
        let topology = Topology::Sentinel {
            sentinels: vec!["rediss://10.0.2.0:26379".into()],
            service: "limits".into(),
            transport: Transport::Tls,
        };
        let shard = ShardSettings { topology, ..redis.shards[0].clone() };
        let topology = servers(&redis, &shard).unwrap().topology;
        let tollgate_redis::Topology::Sentinel(sentinels) = topology else {
            panic!("{topology:?}");
        };
        let tls = |path: &str| Tls { authorities: Some(path.into()), ..Tls::default() };
        let first = &sentinels.sentinels[0];
        let host = "10.0.2.0".into();
        let address = Address::Tcp { host, port: 26379, tls: Some(tls("sentinels.pem")) };
        assert_eq!(first.address, address);
        let password = Some(SecretSource::Env("WATCHER".into()));
        assert_eq!(first.credentials, Credentials { user: Some("watcher".into()), password });
        let credentials = Credentials { user: Some("tollgate".into()), password: None };
        let own =
            ServerAccess { credentials, tls: Some(tls("servers.pem")), ..ServerAccess::default() };
        assert_eq!((&*sentinels.service, sentinels.servers), ("limits", own));

        redis.sentinel.tls.authorities = Some("/no/such/ca.pem".into());
        redis.sentinel.password = None;
        redis.tls.authorities = None;
        let message = check_sources(&redis).unwrap_err().to_string();
        assert!(message.starts_with("store.redis.sentinel.tls.ca: "), "{message}");
    }

    #[test]
    fn a_cluster_is_some_nodes_that_are_reached_as_servers_are() {
        let mut redis = redis(&["a"]);
        redis.user = Some("tollgate".into());
        let nodes = vec!["redis://10.0.3.0:7000".into(), "redis://10.0.3.1:7000".into()];
        let shard =
            ShardSettings { topology: Topology::Cluster { nodes }, ..redis.shards[0].clone() };
        let ConnectTarget::Cluster(cluster) = reached(&redis, &shard).unwrap() else {
            panic!("none")
        };
        let users: Vec<_> =
            cluster.seeds.iter().map(|seed| seed.credentials.user.as_deref()).collect();
        assert_eq!(users, [Some("tollgate"); 2]);
    }

    #[test]
    fn what_cannot_be_used_is_reported_with_its_key() {
        let broken = redis(&["a"]);
        let message =
            servers(&broken, &with_replica(&broken, "http://10.0.1.0")).unwrap_err().to_string();
        assert!(message.starts_with("store.redis.shards.a.replicas: http://10.0.1.0"), "{message}");

        let mut missing = redis(&["a"]);
        missing.tls.authorities = Some("/no/such/ca.pem".into());
        let message = check_sources(&missing).unwrap_err().to_string();
        assert!(message.starts_with("store.redis.tls.ca: "), "{message}");
        assert!(message.contains("/no/such/ca.pem"), "{message}");
        missing.password = Some(KeySource::File { path: "/no/such/password".into() });
        let message = check_sources(&missing).unwrap_err().to_string();
        assert!(message.starts_with("store.redis.password: "), "{message}");
    }

    #[test]
    fn a_server_far_away_is_found_within_the_deadline_that_is_set_for_it() {
        let mut far = redis(&["a"]);
        far.deadline = Duration::from_millis(700);
        let link = servers(&far, &far.shards[0]).unwrap().link;
        assert_eq!([link.seek, link.connect, link.proof, link.heartbeat_answer], [far.deadline; 4]);
        far.deadline = Duration::from_millis(2);
        assert_eq!(servers(&far, &far.shards[0]).unwrap().link, LinkLimits::default());
    }
}
