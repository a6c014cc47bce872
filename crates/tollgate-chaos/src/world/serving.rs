//! One process of `tollgate serve`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::sync::Mutex;

use super::client::NodeClient;
use crate::error::ChaosError;
use crate::process::Process;
use crate::wait::until;

/// The listen address of each listener: the loopback address with port 0, so the system chooses a
/// free port.
const ANY: &str = "127.0.0.1:0";

/// A process of `tollgate serve`, which ends when the value is dropped.
#[derive(Debug)]
pub(super) struct Serving {
    process: Mutex<Process>,
    client: NodeClient,
    log: PathBuf,
    http: String,
    admin: String,
}

impl Serving {
    /// Starts `program` with the policy in `file` and waits until it is ready. The output of the
    /// process is written to `log`.
    ///
    /// # Errors
    /// Returns an error if the process is not ready in time. The error contains the output of the
    /// process.
    pub(super) async fn start(
        client: NodeClient,
        program: &Path,
        file: &Path,
        log: PathBuf,
    ) -> Result<Self, ChaosError> {
        let path = file.display().to_string();
        let words = ["serve", "--policy", &path, "--http", ANY, "--admin", ANY];
        let words = words.map(str::to_owned);
        let directory = file.parent().unwrap_or_else(|| Path::new("."));
        let process = Mutex::new(Process::start_with_output(program, directory, &words, &log)?);
        let opens = async || Ok(listener(&log, "admin").is_some() || !process.lock().await.runs());
        until("that a node opens its listeners", opens).await.map_err(|_| node_error(&log))?;
        let listeners = listener(&log, "http").zip(listener(&log, "admin"));
        let (http, admin) = listeners.ok_or_else(|| node_error(&log))?;
        let is_ready = async || Ok(client.is_ready(&admin).await);
        until("that a node is ready", is_ready).await.map_err(|_| node_error(&log))?;
        Ok(Self { process, client, log, http, admin })
    }

    /// Returns the address of the node's HTTP listener.
    pub(super) fn http(&self) -> &str {
        &self.http
    }

    /// Returns the status of the node.
    pub(super) async fn status(&self) -> Result<Value, ChaosError> {
        self.client.get(&self.admin, "/v1/status").await
    }

    /// Makes the node reload its policy file with SIGHUP.
    pub(super) async fn reload(&self) -> Result<(), ChaosError> {
        self.process.lock().await.hang_up()
    }

    /// Sends SIGTERM and waits until the process has answered all requests and ended.
    ///
    /// # Errors
    /// Returns an error if the process does not end in time, or if it aborted requests. The error
    /// contains the output of the process.
    pub(super) async fn end(&self) -> Result<(), ChaosError> {
        self.process.lock().await.terminate()?;
        let ends = async || Ok(!self.process.lock().await.runs());
        until("that a node ends", ends).await?;
        match self.process.lock().await.has_succeeded() {
            true => Ok(()),
            false => Err(node_error(&self.log)),
        }
    }
}

/// Returns the address of a listener, or `None` if the process has not logged the address yet.
fn listener(log: &Path, name: &str) -> Option<String> {
    let status = fs::read_to_string(log).ok()?;
    // The last line may be incomplete.
    let lines = status.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let mut listeners = lines.filter_map(|line| line.split_once(" at "));
    listeners.find(|(listener, _)| *listener == name).map(|(_, address)| address.to_owned())
}

fn node_error(log: &Path) -> ChaosError {
    ChaosError::Node(fs::read_to_string(log).unwrap_or_default())
}
