//! A server with a wrong wall clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use tempfile::TempDir;

use super::{PATIENCE, Server};

/// The source of a small library, which each test compiles. The usual tools for a wrong clock do
/// not work with Redis, because its allocator starts before the tools.
const SOURCE: &str = include_str!("wall_clock.c");

/// A wall clock that is wrong by a time that the test sets, for one or more servers.
pub struct WallClock {
    directory: TempDir,
}

impl WallClock {
    /// Creates a clock without an error.
    pub fn new() -> Self {
        let clock = Self { directory: TempDir::new().expect("a temporary directory") };
        let source = clock.directory.path().join("wall_clock.c");
        fs::write(&source, SOURCE).expect("the clock's source");
        let compiled = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&clock.library(), &source])
            .status()
            .unwrap_or_else(|error| panic!("cc: {error}; apt-get install gcc installs it"));
        assert!(compiled.success(), "cc failed: {compiled}");
        clock.write(0);
        clock
    }

    /// Sets the clock's error in milliseconds and waits until `server` uses it.
    pub async fn set(&self, off: i64, server: &Server) {
        self.write(off);
        let noticed = async {
            while (server.is_off_by().await - off).abs() > 30_000 {
                tokio::time::sleep(super::READY_PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, noticed).await.expect("the server's clock moved");
    }

    /// Makes `command` start a process with this clock.
    pub(super) fn rule(&self, command: &mut Command) {
        command.env("LD_PRELOAD", self.library()).env("WALL_CLOCK_OFF", self.off());
    }

    fn write(&self, off: i64) {
        // A rename replaces the file atomically, so a reader never sees an incomplete file.
        let next = self.directory.path().join("next");
        fs::write(&next, off.to_string()).expect("the clock's file");
        fs::rename(next, self.off()).expect("the clock's file");
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("wall_clock.so")
    }

    fn off(&self) -> PathBuf {
        Path::new(self.directory.path()).join("off")
    }
}

impl Server {
    /// Returns the number of milliseconds by which the server's wall clock is ahead of this
    /// machine's wall clock.
    pub async fn is_off_by(&self) -> i64 {
        let mut connection = self.connect().await;
        let time = redis::cmd("TIME").query_async(&mut connection).await;
        let (secs, micros): (i64, i64) = time.expect("the server's time");
        // This machine's clock is read from the time stamp of a new file.
        let made = tempfile::tempfile().and_then(|file| file.metadata()?.modified());
        let made = made.expect("a file's time").duration_since(UNIX_EPOCH);
        let now = made.expect("a time after 1970").as_millis();
        secs * 1_000 + micros / 1_000 - i64::try_from(now).expect("a time of today")
    }
}
