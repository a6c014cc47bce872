//! A Redis server of a test's own, gone with it.

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
mod power;
mod proxy;
mod replication;
mod version;

pub use certificates::Certificates;
pub use cluster::{Cluster, PRIMARIES, Replicas};
pub use proxy::{Passage, Proxy};
pub use replication::{QUICK, wait_for_replica};
pub use version::Version;
pub(crate) use version::on_every_version;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};
use tempfile::TempDir;

/// How often a port is tried that another process may take first.
const PORT_TRIES: usize = 10;
/// How often a server that starts is asked whether it is ready, and how long between.
const READY_TRIES: usize = 500;
const READY_PAUSE: Duration = Duration::from_millis(20);
/// Longer than any answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a free loopback port that keeps nothing on disk.
pub struct Server {
    version: Version,
    child: Child,
    port: u16,
    directory: TempDir,
}

impl Server {
    /// Starts the server that the system packages and waits until it answers.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// As [`Self::start`], with more arguments such as `--maxmemory 10mb`.
    pub async fn start_with(arguments: &[&str]) -> Self {
        Self::start_version(Version::default(), arguments).await
    }

    /// As [`Self::start_with`], of this version.
    pub async fn start_version(version: Version, arguments: &[&str]) -> Self {
        for _ in 0..PORT_TRIES {
            let mut server = Self::spawn(version, arguments);
            if server.is_ready().await {
                return server;
            }
        }
        panic!("{version:?} {arguments:?} did not start on any of {PORT_TRIES} ports");
    }

    fn spawn(version: Version, arguments: &[&str]) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let port = free_port();
        let child = run(version, port, directory.path(), arguments);
        Self { version, child, port, directory }
    }

    async fn is_ready(&mut self) -> bool {
        for _ in 0..READY_TRIES {
            if self.child.try_wait().expect("a child").is_some() {
                return false;
            }
            if let Ok(mut connection) = self.try_connect("").await
                && redis::cmd("PING").exec_async(&mut connection).await.is_ok()
            {
                return true;
            }
            tokio::time::sleep(READY_PAUSE).await;
        }
        false
    }

    /// A connection as the default user.
    pub async fn connect(&self) -> MultiplexedConnection {
        self.try_connect("").await.expect("a connection")
    }

    /// A connection as the user `name` with `password`.
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

/// A loopback port that nobody listens on, though another process may begin to.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn run(version: Version, port: u16, directory: &Path, arguments: &[&str]) -> Child {
    let program = version.program();
    Command::new(&program)
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("{}: {error}; ./test installs what is missing", program.display())
        })
}

impl Drop for Server {
    fn drop(&mut self) {
        // It keeps nothing, so there is nothing to say goodbye to.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
