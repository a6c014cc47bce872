//! A Redis server for one test. The server ends with the test.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    unreachable_pub,
    reason = "each test uses a part of it"
)]

mod certificates;
mod cluster;
mod keyspace;
mod latency;
mod module;
mod power;
mod proxy;
mod replication;
mod version;
mod wall_clock;

pub use certificates::Certificates;
pub use cluster::{Cluster, PRIMARIES, Replicas};
pub use latency::{Latency, LatencyProxy};
pub use module::module_file;
pub use proxy::{Passage, Proxy};
pub use replication::{QUICK, wait_for_replica};
pub use version::Version;
pub(crate) use version::on_every_version;
pub use wall_clock::WallClock;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};
use tempfile::TempDir;
use tokio::net::TcpSocket;

/// The most attempts to find a free port. Another process may take a free port before the server
/// does.
const PORT_TRIES: usize = 10;
/// The most checks whether a starting server is ready. `READY_PAUSE` is the pause between two
/// checks.
const READY_TRIES: usize = 500;
const READY_PAUSE: Duration = Duration::from_millis(20);
/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a free loopback port that stores nothing on disk.
pub struct Server {
    version: Version,
    child: Child,
    port: u16,
    directory: TempDir,
    /// Keeps the port while the server is down. Without it, the server of another test could take
    /// the port, and the clients and sentinels of this test would use that server.
    held_port: Option<TcpSocket>,
}

impl Server {
    /// Starts the server of the system's package and waits until the server answers.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server like [`Self::start`], with additional arguments such as `--maxmemory 10mb`.
    pub async fn start_with(arguments: &[&str]) -> Self {
        Self::start_version(Version::default(), arguments).await
    }

    /// Starts a server like [`Self::start_with`], in this version.
    pub async fn start_version(version: Version, arguments: &[&str]) -> Self {
        Self::start_as(version, arguments, |_| {}).await
    }

    /// Starts a server like [`Self::start_version`], with this wall clock.
    pub async fn start_by(version: Version, clock: &WallClock, arguments: &[&str]) -> Self {
        Self::start_as(version, arguments, |command| clock.rule(command)).await
    }

    async fn start_as(
        version: Version,
        arguments: &[&str],
        prepare: impl Fn(&mut Command),
    ) -> Self {
        for _ in 0..PORT_TRIES {
            let directory = TempDir::new().expect("a temporary directory");
            let port = free_port();
            let mut command = command(version, port, directory.path(), arguments);
            prepare(&mut command);
            let child = run(&mut command);
            let mut server = Self { version, child, port, directory, held_port: None };
            if server.is_ready().await {
                return server;
            }
        }
        panic!("{version:?} {arguments:?} did not start on any of {PORT_TRIES} ports");
    }

    /// Returns the server's version.
    pub const fn version(&self) -> Version {
        self.version
    }

    async fn is_ready(&mut self) -> bool {
        for _ in 0..READY_TRIES {
            if self.child.try_wait().expect("a child").is_some() {
                return false;
            }
            if let Ok(mut connection) = self.try_connect("").await
                && redis::cmd("PING").exec_async(&mut connection).await.is_ok()
                && self.is_own(&mut connection).await
            {
                return true;
            }
            tokio::time::sleep(READY_PAUSE).await;
        }
        false
    }

    /// Returns whether this server answers at its port. If another test took the port first, the
    /// server of that test answers until this one ends with an error.
    async fn is_own(&self, connection: &mut MultiplexedConnection) -> bool {
        let own = format!("process_id:{}\r\n", self.child.id());
        // Some tests deny INFO to the default user.
        let info = redis::cmd("INFO").arg("server").query_async::<String>(connection).await;
        info.map_or(true, |info| info.contains(&own))
    }

    /// Opens a connection as the default user.
    pub async fn connect(&self) -> MultiplexedConnection {
        self.try_connect("").await.expect("a connection")
    }

    /// Opens a connection as the user `name` with `password`.
    pub async fn connect_as(&self, name: &str, password: &str) -> MultiplexedConnection {
        self.try_connect(&format!("{name}:{password}@")).await.expect("a connection")
    }

    async fn try_connect(&self, user: &str) -> redis::RedisResult<MultiplexedConnection> {
        let client = Client::open(format!("redis://{user}127.0.0.1:{}", self.port))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        client.get_multiplexed_async_connection_with_config(&config).await
    }
}

/// Returns a free loopback port. Another process may take the port before the server does.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn command(version: Version, port: u16, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(version.program());
    command
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn run(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|error| {
        let program = command.get_program().display();
        panic!("{program}: {error}; ./test installs what is missing")
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server stores nothing, so no orderly shutdown is needed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
