//! Envoy with a shipped configuration.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::packaging::files::root;
use crate::support::world::Answer;

/// The most checks for an expected state, and the time between two checks.
const TRIES: usize = 3_000;
const PAUSE: Duration = Duration::from_millis(20);

/// An Envoy process. The process is stopped when this value is dropped.
pub(crate) struct Envoy {
    child: Child,
    admin: SocketAddr,
}

impl Envoy {
    /// Starts with `arguments` in `folder`, with `configuration` as its configuration file.
    pub(crate) fn start(
        arguments: &[String],
        configuration: &str,
        folder: &Path,
        environment: &[(&str, &str)],
    ) -> Self {
        let (path, admin) = (folder.join("envoy.yaml"), folder.join("admin"));
        let bootstrap =
            "admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }\n";
        std::fs::write(&path, format!("{configuration}{bootstrap}")).unwrap();
        let program = root().join("target/envoy/envoy");
        let arguments = arguments.iter().map(|argument| match argument.as_str() {
            "/etc/envoy/envoy.yaml" => path.display().to_string(),
            argument => argument.to_owned(),
        });
        let mut child = Command::new(&program)
            .args(arguments)
            .args(["--concurrency", "2", "--disable-hot-restart", "--log-level", "warning"])
            .arg("--admin-address-path")
            .arg(&admin)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; ./test installs it", program.display()));
        let admin = eventually("Envoy's administration", || {
            let status = child.try_wait().unwrap();
            assert!(status.is_none(), "Envoy ended with {status:?}");
            std::fs::read_to_string(&admin).ok()?.trim().parse().ok()
        });
        Self { child, admin }
    }

    /// Returns the address of the listener for clients.
    pub(crate) fn listener(&self) -> SocketAddr {
        eventually("Envoy's listener", || {
            let listeners = get(self.admin, "/listeners", "")?.body;
            // The body is chunked; the lengths of chunks are on lines of their own.
            listeners.lines().find_map(|line| line.strip_prefix("edge::")?.parse().ok())
        })
    }

    /// Waits until `hosts` hosts of Envoy's rate limit service are healthy.
    pub(crate) fn knows_healthy(&self, hosts: usize) {
        eventually("healthy nodes", || {
            let clusters = get(self.admin, "/clusters", "")?.body;
            let is_healthy =
                |line: &&str| line.starts_with("tollgate::") && line.ends_with("::healthy");
            (clusters.lines().filter(is_healthy).count() == hosts).then_some(())
        });
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the response to a request, if there is one.
pub(crate) fn get(to: SocketAddr, path: &str, fields: &str) -> Option<Answer> {
    let mut client = TcpStream::connect(to).ok()?;
    write!(client, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{fields}\r\n")
        .ok()?;
    let mut client = BufReader::new(client);
    let mut bytes = Vec::new();
    client.fill_buf().ok().filter(|bytes| !bytes.is_empty())?;
    client.read_to_end(&mut bytes).ok()?;
    Some(Answer::parse(&bytes))
}

/// Repeats `probe` until it returns a value.
fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    for _ in 0..TRIES {
        if let Some(answer) = probe() {
            return answer;
        }
        sleep(PAUSE);
    }
    panic!("no {what}")
}
