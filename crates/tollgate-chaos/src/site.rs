//! The environment of a run: the programs to start, a temporary directory, and the length of the
//! scenarios.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::error::ChaosError;
use super::memcached::MemcachedServer;
use super::server::Server;

/// The length of a scenario, and whether times are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// About three seconds, which is enough to see the effect of the fault. Times are reported but
    /// not checked, because a machine that runs other tests may be slow.
    Quick,
    /// About ten seconds. Times are checked.
    Long,
}

/// The programs to start. Each program is a path, or a name to look up in `PATH`.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The Redis server, which is also used as sentinel.
    pub(crate) redis: PathBuf,
    /// The memcached server.
    pub(crate) memcached: PathBuf,
    /// The `tollgate` binary.
    pub(crate) tollgate: PathBuf,
    /// The server module that each Redis server loads.
    pub(crate) module: Option<PathBuf>,
}

/// The environment of a run. Its temporary directory is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct Site {
    programs: Programs,
    length: Length,
    directory: TempDir,
    rooms: AtomicU64,
}

/// A primary, and a replica that is in sync with the primary.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The server that nodes charge at first.
    pub(crate) primary: Server,
    /// The server that may replace the primary.
    pub(crate) replica: Server,
}

impl Site {
    /// Creates an environment with these programs.
    pub(crate) fn new(programs: Programs, length: Length) -> Result<Self, ChaosError> {
        let directory = tempfile::Builder::new()
            .prefix("tollgate-chaos-")
            .tempdir()
            .map_err(ChaosError::Directory)?;
        let Programs { redis, memcached, tollgate, module } = programs;
        let programs = Programs {
            redis: named(redis)?,
            memcached: named(memcached)?,
            tollgate: named(tollgate)?,
            module: module.map(named).transpose()?,
        };
        Ok(Self { programs, length, directory, rooms: AtomicU64::new(0) })
    }

    /// Returns the duration of each scenario.
    pub(crate) const fn length(&self) -> Length {
        self.length
    }

    /// Returns the duration of each of the three phases of a scenario: before, during and after its
    /// fault.
    pub(crate) const fn part(&self) -> Duration {
        match self.length {
            Length::Quick => Duration::from_millis(500),
            Length::Long => Duration::from_millis(2_500),
        }
    }

    /// Starts a Redis server without persistence. `arguments` are added to its command line.
    pub(crate) async fn server(&self, arguments: &[&str]) -> Result<Server, ChaosError> {
        let Programs { redis, module, .. } = &self.programs;
        Server::start((redis.clone(), module.clone()), self.room()?, arguments).await
    }

    /// Starts a primary and a replica, and waits until the replica is in sync.
    pub(crate) async fn pair(&self) -> Result<Pair, ChaosError> {
        let (primary, replica) = (self.server(&[]).await?, self.server(&[]).await?);
        replica.follow(&primary).await?;
        Ok(Pair { primary, replica })
    }

    /// Starts a memcached server.
    pub(crate) async fn memcached(&self) -> Result<MemcachedServer, ChaosError> {
        MemcachedServer::start(self.programs.memcached.clone(), self.room()?).await
    }

    /// Returns the Redis server program, which is also used as sentinel.
    pub(crate) fn redis(&self) -> &Path {
        &self.programs.redis
    }

    /// Returns the `tollgate` program.
    pub(crate) fn tollgate(&self) -> &Path {
        &self.programs.tollgate
    }

    /// Creates a new directory inside the directory of the environment.
    pub(crate) fn room(&self) -> Result<PathBuf, ChaosError> {
        let number = self.rooms.fetch_add(1, Ordering::Relaxed);
        let room = self.directory.path().join(number.to_string());
        fs::create_dir(&room).map_err(|error| ChaosError::File(room.clone(), error))?;
        Ok(room)
    }
}

/// Returns the absolute path of a program. A name without a folder is returned unchanged, for a
/// lookup in `PATH`.
fn named(program: PathBuf) -> Result<PathBuf, ChaosError> {
    if program.components().count() < 2 {
        return Ok(program);
    }
    std::path::absolute(&program).map_err(|error| ChaosError::Start(program, error))
}

impl Pair {
    /// Returns the shard's settings for a policy.
    pub(crate) fn words(&self) -> String {
        let (primary, replica) = (self.primary.url(), self.replica.url());
        format!("{{ primary: \"{primary}\", replicas: \"{replica}\" }}")
    }
}
