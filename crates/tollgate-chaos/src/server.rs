//! A Redis or Valkey server that a scenario starts.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, FromRedisValue};

use super::error::ChaosError;
use super::process::Process;
use super::wait::{WAIT_TIMEOUT, until};

/// The most attempts to find a free port. An attempt fails if another process takes the port first.
const PORT_TRIES: usize = 5;
/// The longest time until a server answers for the first time.
const READY_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// A Redis or Valkey server on a loopback port, which ends when the value is dropped. By default
/// the server writes nothing to disk.
#[derive(Debug)]
pub(crate) struct Server {
    program: PathBuf,
    module: Option<PathBuf>,
    directory: PathBuf,
    process: Process,
    port: u16,
}

impl Server {
    /// Starts `program` in `directory`, with the server module if there is a module. Waits until
    /// the server answers.
    pub(crate) async fn start(
        (program, module): (PathBuf, Option<PathBuf>),
        directory: PathBuf,
        arguments: &[&str],
    ) -> Result<Self, ChaosError> {
        for _ in 0..PORT_TRIES {
            let port = free_port()?;
            let args = args(port, module.as_deref(), arguments);
            let process = Process::start(&program, &directory, &args)?;
            let (program, module) = (program.clone(), module.clone());
            let directory = directory.clone();
            let mut server = Self { program, module, directory, process, port };
            if server.is_ready().await {
                return Ok(server);
            }
        }
        Err(ChaosError::NotReady(program, READY_WITHIN))
    }

    /// Returns the server's port on 127.0.0.1.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's URL.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<(), ChaosError> {
        self.process.kill()
    }

    /// Stops the server with SIGSTOP.
    pub(crate) fn freeze(&self) -> Result<(), ChaosError> {
        self.process.freeze()
    }

    /// Lets the stopped server continue.
    pub(crate) fn thaw(&self) -> Result<(), ChaosError> {
        self.process.thaw()
    }

    /// Starts the server again on its port with its saved data. Does not wait until the server is
    /// ready.
    pub(crate) fn start_again(&mut self, arguments: &[&str]) -> Result<(), ChaosError> {
        let args = args(self.port, self.module.as_deref(), arguments);
        self.process = Process::start(&self.program, &self.directory, &args)?;
        Ok(())
    }

    /// Executes a command.
    pub(crate) async fn send(&self, command: &[&str]) -> Result<(), ChaosError> {
        self.query::<redis::Value>(command).await.map(|_| ())
    }

    /// Returns the answer to a command.
    pub(crate) async fn query<T: FromRedisValue>(&self, command: &[&str]) -> Result<T, ChaosError> {
        Self::query_at(self.port, command).await
    }

    /// Sends a command to the server of this run that listens on `port`, and returns the answer.
    pub(crate) async fn query_at<T: FromRedisValue>(
        port: u16,
        command: &[&str],
    ) -> Result<T, ChaosError> {
        let reply = async {
            let mut connection = connect(port).await?;
            redis::cmd(command[0]).arg(&command[1..]).query_async(&mut connection).await
        };
        reply.await.map_err(|error| ChaosError::Command(command.join(" "), error))
    }

    /// Makes the server a replica of `leader`, and waits until the replica is in sync.
    pub(crate) async fn follow(&self, leader: &Self) -> Result<(), ChaosError> {
        self.follow_at(leader.port).await
    }

    /// Makes the server a replica of the server at `port` of 127.0.0.1, and waits until the replica
    /// is in sync.
    pub(crate) async fn follow_at(&self, port: u16) -> Result<(), ChaosError> {
        self.send(&["REPLICAOF", "127.0.0.1", &port.to_string()]).await?;
        until("that a replica is in step", async || {
            let role: redis::Value = self.query(&["ROLE"]).await?;
            Ok(format!("{role:?}").contains("connected"))
        })
        .await
    }

    /// Makes the server a primary.
    pub(crate) async fn promote(&self) -> Result<(), ChaosError> {
        self.send(&["REPLICAOF", "NO", "ONE"]).await
    }

    /// Waits until a replica has received all writes of this server so far.
    pub(crate) async fn is_followed(&self) -> Result<(), ChaosError> {
        let within = WAIT_TIMEOUT.as_millis().to_string();
        let mut connection = connect(self.port).await.map_err(|error| wait_failed(&error))?;
        let mut wait = redis::pipe();
        // WAIT covers the last write of this connection and all writes before it.
        wait.cmd("SET").arg("chaos:mark").arg("").arg("PX").arg(&within).ignore();
        wait.cmd("WAIT").arg(1).arg(&within);
        let (replicas,): (u64,) =
            wait.query_async(&mut connection).await.map_err(|error| wait_failed(&error))?;
        if replicas == 0 {
            return Err(ChaosError::WaitTimedOut("that a replica has all", WAIT_TIMEOUT));
        }
        Ok(())
    }

    /// Returns the number of commands that the server has executed since its start and that have a
    /// name beginning with one of `names`.
    pub(crate) async fn ran(&self, names: &[&str]) -> Result<u64, ChaosError> {
        let stats: String = self.query(&["INFO", "commandstats"]).await?;
        Ok(stats.lines().filter_map(|line| calls_of(line, names)).sum())
    }

    /// Returns the number that follows `args` at the start of a line in the section `section` of
    /// `INFO`, or 0 if no line starts with `args`. An example of `args` is `used_memory:`.
    pub(crate) async fn info_field(&self, section: &str, args: &str) -> Result<u64, ChaosError> {
        let text: String = self.query(&["INFO", section]).await?;
        Ok(text.lines().find_map(|line| number(line.strip_prefix(args)?)).unwrap_or_default())
    }

    async fn is_ready(&mut self) -> bool {
        let started = tokio::time::Instant::now();
        while started.elapsed() < READY_WITHIN && self.process.runs() {
            if self.send(&["PING"]).await.is_ok() {
                // If another process took the port, the process of this server has ended or will
                // end at once.
                return self.process.runs();
            }
            tokio::time::sleep(PAUSE).await;
        }
        false
    }
}

async fn connect(port: u16) -> redis::RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(WAIT_TIMEOUT))
        .set_response_timeout(Some(WAIT_TIMEOUT));
    let client = Client::open(format!("redis://127.0.0.1:{port}"))?;
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Returns a free loopback port. Another process may take the port before the server listens on it.
pub(crate) fn free_port() -> Result<u16, ChaosError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(ChaosError::Port)?;
    Ok(listener.local_addr().map_err(ChaosError::Port)?.port())
}

fn args(port: u16, module: Option<&Path>, more: &[&str]) -> Vec<String> {
    let port = port.to_string();
    let module = module.map(|path| ["--loadmodule".to_owned(), path.display().to_string()]);
    // A replica syncs at once, and the server saves nothing by default.
    let own = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"];
    let quick = ["--repl-diskless-sync-delay", "0"];
    let args = own.iter().chain(&quick).chain(more).map(|word| (*word).to_owned());
    args.chain(module.into_iter().flatten()).collect()
}

/// Returns the number of calls in a `line` of `INFO commandstats`. Returns `None` if the name of
/// the line's command begins with none of `names`.
fn calls_of(line: &str, names: &[&str]) -> Option<u64> {
    let (command, text) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    let counts = names.iter().any(|name| command.starts_with(name));
    counts.then(|| text.split(',').next()?.parse().ok()).flatten()
}

/// Returns the number at the start of `text`, or `None` if `text` does not start with a number.
fn number(text: &str) -> Option<u64> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

fn wait_failed(error: &redis::RedisError) -> ChaosError {
    ChaosError::Command("WAIT for its replica".into(), error.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_where_its_digits_do() {
        assert_eq!(number("12,rejected=0"), Some(12));
        assert_eq!(number("7"), Some(7));
        assert_eq!(number("none"), None);
    }

    #[test]
    fn calls_are_read_from_the_statistics() {
        let line = "cmdstat_fcall:calls=12,usec=99,usec_per_call=8.25,rejected_calls=0";
        assert_eq!(calls_of(line, &["fcall", "evalsha"]), Some(12));
        assert_eq!(calls_of(line, &["evalsha"]), None);
        assert_eq!(calls_of("# Commandstats", &["fcall"]), None);
    }
}
