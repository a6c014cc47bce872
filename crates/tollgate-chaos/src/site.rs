//! Where a run happens: the programs, a directory of its own, and how long things take.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::error::ChaosError;
use super::memcached::MemcachedServer;
use super::server::Server;

/// How long a scenario takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// About three seconds: enough to see the fault bite. Times are told and not judged, since a
    /// machine that runs other tests beside may be late by itself.
    Quick,
    /// About ten seconds.
    Long,
}

/// What is started, each by a path or by a name that the system looks up.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The Redis server, which sentinels are as well.
    pub(crate) redis: PathBuf,
    /// The memcached.
    pub(crate) memcached: PathBuf,
    /// The binary that serves.
    pub(crate) tollgate: PathBuf,
}

/// Where a run happens. The directory and what lies in it are gone with the value.
#[derive(Debug)]
pub(crate) struct Site {
    programs: Programs,
    length: Length,
    directory: TempDir,
    rooms: AtomicU64,
}

/// A primary, and a replica in step with it.
#[derive(Debug)]
pub(crate) struct Pair {
    /// What the nodes charge at first.
    pub(crate) primary: Server,
    /// What may take its place.
    pub(crate) replica: Server,
}

impl Site {
    /// A site for servers of these programs.
    pub(crate) fn new(programs: Programs, length: Length) -> Result<Self, ChaosError> {
        let directory = tempfile::Builder::new()
            .prefix("tollgate-chaos-")
            .tempdir()
            .map_err(ChaosError::Directory)?;
        let Programs { redis, memcached, tollgate } = programs;
        let programs = Programs {
            redis: named(redis)?,
            memcached: named(memcached)?,
            tollgate: named(tollgate)?,
        };
        Ok(Self { programs, length, directory, rooms: AtomicU64::new(0) })
    }

    /// How long scenarios take.
    pub(crate) const fn length(&self) -> Length {
        self.length
    }

    /// The time of one part of a scenario: before, in and after its fault.
    pub(crate) const fn part(&self) -> Duration {
        match self.length {
            Length::Quick => Duration::from_millis(500),
            Length::Long => Duration::from_millis(2_500),
        }
    }

    /// A server that keeps nothing, with more `arguments`.
    pub(crate) async fn server(&self, arguments: &[&str]) -> Result<Server, ChaosError> {
        Server::start(self.programs.redis.clone(), self.room()?, arguments).await
    }

    /// A primary and a replica in step with it.
    pub(crate) async fn pair(&self) -> Result<Pair, ChaosError> {
        let (primary, replica) = (self.server(&[]).await?, self.server(&[]).await?);
        replica.follow(&primary).await?;
        Ok(Pair { primary, replica })
    }

    /// A memcached.
    pub(crate) async fn memcached(&self) -> Result<MemcachedServer, ChaosError> {
        MemcachedServer::start(self.programs.memcached.clone(), self.room()?).await
    }

    /// The program of the Redis server, which sentinels are as well.
    pub(crate) fn redis(&self) -> &Path {
        &self.programs.redis
    }

    /// The program that serves.
    pub(crate) fn tollgate(&self) -> &Path {
        &self.programs.tollgate
    }

    /// A new directory inside of the site's.
    pub(crate) fn room(&self) -> Result<PathBuf, ChaosError> {
        let number = self.rooms.fetch_add(1, Ordering::Relaxed);
        let room = self.directory.path().join(number.to_string());
        fs::create_dir(&room).map_err(|error| ChaosError::File(room.clone(), error))?;
        Ok(room)
    }
}

/// The program as it is named, wherever it is started: a path goes on from here, a name is looked up.
fn named(program: PathBuf) -> Result<PathBuf, ChaosError> {
    if program.components().count() < 2 {
        return Ok(program);
    }
    std::path::absolute(&program).map_err(|error| ChaosError::Start(program, error))
}

impl Pair {
    /// The words of a policy's shard.
    pub(crate) fn words(&self) -> String {
        let (primary, replica) = (self.primary.url(), self.replica.url());
        format!("{{ primary: \"{primary}\", replicas: \"{replica}\" }}")
    }
}
