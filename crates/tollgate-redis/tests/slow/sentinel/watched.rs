//! A primary, two replicas, three sentinels, and a store on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Subject};
use tollgate_redis::{
    BatcherError, Credentials, Endpoint, Keys, LinkLimits, RedisShard, RuntimeChoice, Secret,
    SecretSource, Sentinels, ServerAccess, ShardSettings, Tls, Topology,
};

use crate::kit::{Certificates, QUICK, Server, Version, free_port};
use crate::sentinel::{NOW, PATIENCE, until};

/// The name of the shard in the configuration of the sentinels.
const SERVICE: &str = "limits";

/// How clients connect to a sentinel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// The sentinel accepts only the shipped user, over mutual TLS.
    Guarded,
}

/// A sentinel process, which ends when the value is dropped.
pub(crate) struct Sentinel {
    child: Child,
    port: u16,
    /// The configuration. The sentinel adds the servers and sentinels that it discovers.
    config: PathBuf,
    _directory: TempDir,
}

/// Servers and the sentinels that monitor these servers. The first server is the primary at first.
pub(crate) struct Watched {
    pub(crate) servers: Vec<Server>,
    pub(crate) sentinels: Vec<Sentinel>,
    certificates: Certificates,
    way: Way,
}

/// A store, and a limit to charge.
pub(crate) struct Client {
    pub(crate) store: RedisShard,
    limit: Limit,
}

impl Sentinel {
    fn start(version: Version, primary: &Server, certificates: &Certificates, way: Way) -> Self {
        let (directory, port) = (TempDir::new().unwrap(), free_port());
        let mut config = format!(
            "bind 127.0.0.1\nport {port}\nsentinel monitor {SERVICE} 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds {SERVICE} 1000\n\
             sentinel failover-timeout {SERVICE} 5000\n",
            primary.port()
        );
        if way == Way::Guarded {
            // The sentinels connect to each other and to the servers in clear text.
            config = config.replace(&format!("port {port}\n"), &format!("port {}\n", free_port()));
            for pair in certificates.arguments(port).chunks(2) {
                let name = pair[0].trim_start_matches("--");
                config.push_str(&format!("{name} {}\n", pair[1]));
            }
            config.push_str(&shipped_user());
        }
        let path = directory.path().join("sentinel.conf");
        fs::write(&path, config).unwrap();
        Self { child: run(version, &path), port, config: path, _directory: directory }
    }

    /// Returns whether this sentinel has discovered the two other sentinels and two replicas.
    fn knows_all(&self) -> bool {
        let config = fs::read_to_string(&self.config).unwrap_or_default();
        let count = |word| config.lines().filter(|line| line.contains(word)).count();
        count(" known-sentinel ") == 2 && count(" known-replica ") == 2
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn freeze(&self) {
        let process = self.child.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &process]).status().unwrap().success());
    }

    fn endpoint(&self, certificates: &Certificates, way: Way) -> Endpoint {
        let (port, path) = (self.port, |name| certificates.path(name));
        if way == Way::Open {
            return format!("redis://127.0.0.1:{port}").parse().unwrap();
        }
        let endpoint: Endpoint = format!("rediss://127.0.0.1:{port}").parse().unwrap();
        let credentials = Credentials {
            user: Some("tollgate".into()),
            password: Some(SecretSource::Inline(Secret::new("password"))),
        };
        let client = Some((path("client.pem"), path("client.key")));
        let tls = Tls { authorities: Some(path("ca.pem")), client, server_name: None };
        endpoint.with_credentials(credentials).with_tls(tls).unwrap()
    }
}

fn run(version: Version, config: &Path) -> Child {
    Command::new(version.program())
        .arg(config)
        .arg("--sentinel")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("a sentinel")
}

/// Returns the shipped user for sentinels.
fn shipped_user() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/redis-acl.txt");
    let text = fs::read_to_string(file).expect("the shipped users");
    let below = text.lines().skip_while(|line| !line.starts_with("# Sentinels")).nth(1);
    format!("{}\n", below.expect("a line below the heading"))
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watched {
    pub(crate) async fn start(version: Version, way: Way) -> Self {
        let mut servers = Vec::new();
        for _ in 0..3 {
            servers.push(Server::start_version(version, &QUICK).await);
        }
        for replica in &servers[1..] {
            replica.follow(&servers[0]).await;
        }
        let certificates = Certificates::new();
        let sentinel = |_| Sentinel::start(version, &servers[0], &certificates, way);
        let sentinels: Vec<_> = (0..3).map(sentinel).collect();
        Self { servers, sentinels, certificates, way }
    }

    /// Returns a node's settings, which contain only the sentinels.
    pub(crate) fn settings(&self) -> ShardSettings {
        let endpoint = |sentinel: &Sentinel| sentinel.endpoint(&self.certificates, self.way);
        let mut settings = ShardSettings::of(Topology::Sentinel(Sentinels {
            sentinels: self.sentinels.iter().map(endpoint).collect(),
            service: SERVICE.into(),
            servers: ServerAccess::default(),
        }));
        // The timeout is long, so a machine that is busy with other tests does not look like a
        // fault.
        settings.link = LinkLimits { proof: Duration::from_millis(500), ..settings.link };
        settings
    }

    /// Returns the index of the server that the store is connected to, or `None` without a
    /// connection.
    pub(crate) fn primary_of(&self, client: &Client) -> Option<usize> {
        let address = client.store.status()[0].address.clone()?;
        self.servers.iter().position(|server| server.url() == address)
    }

    /// Waits until the store knows all replicas from the sentinels, and the sentinels know each
    /// other, so a replica can take over. Sentinels that discover a frozen primary never do.
    pub(crate) async fn is_known_to(&self, client: &Client) {
        until(|| self.sentinels.iter().all(Sentinel::knows_all)).await;
        until(|| client.store.status().len() == self.servers.len()).await;
    }
}

impl Client {
    pub(crate) async fn connect(settings: &ShardSettings) -> Self {
        let store = RedisShard::open(settings, Keys::new(PlainHash), RuntimeChoice::Best);
        store.ready(PATIENCE).await.unwrap();
        let window = FixedWindow::new(1 << 40, Millis::new(3_600_000), Anchor::FirstRequest);
        let limit = Limit::new("core", Algorithm::FixedWindow(window.unwrap())).unwrap();
        Self { store, limit }
    }

    /// Charges one unit. Returns the used units after the charge.
    pub(crate) async fn take(&self) -> Result<u64, BatcherError> {
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
        let charge = Charge { limit: &self.limit, subject: &Subject::default(), operation };
        let within = Duration::from_millis(500);
        Ok(self.store.apply_within(NOW, &[charge], within).await?[0].used)
    }

    /// Returns the value that a server stores for the limit.
    pub(crate) async fn held_by(&self, server: &Server) -> Option<Vec<u8>> {
        let name = Keys::new(PlainHash).name(&self.limit, &Subject::default());
        let mut connection = server.connect().await;
        redis::cmd("GET").arg(&name[..]).query_async(&mut connection).await.unwrap()
    }
}
