//! A process of Envoy.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::envoy::site::changed;
use crate::support::world::Answer;

/// The most checks for an expected state, and the time between two checks.
const TRIES: usize = 3_000;
const PAUSE: Duration = Duration::from_millis(20);

/// An Envoy process with one listener. The process is stopped when this value is dropped.
pub(crate) struct Envoy {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Envoy {
    /// Starts Envoy with a shipped configuration, in which the ports are replaced by the ports of
    /// this test.
    pub(crate) fn start(
        configuration: &str,
        folder: &Path,
        service: SocketAddr,
        tollgate: SocketAddr,
    ) -> Self {
        let port = |port: u16| format!("port_value: {port} }}");
        let mut configuration = changed(
            configuration,
            &[
                (&port(10_000), &port(0)),
                (&port(9_000), &port(service.port())),
                (&port(8_081), &port(tollgate.port())),
            ],
        );
        configuration.push_str(
            "admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }\n",
        );
        let path = folder.join("envoy.yaml");
        std::fs::write(&path, configuration).unwrap();
        let (admin, log) = (folder.join("admin"), folder.join("envoy.log"));
        let mut child = Command::new(program())
            .args(["--concurrency", "2", "--disable-hot-restart", "--log-level", "warning"])
            .arg("--config-path")
            .arg(path)
            .arg("--admin-address-path")
            .arg(&admin)
            .arg("--log-path")
            .arg(&log)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut gone = || {
            let status = child.try_wait().unwrap();
            assert!(status.is_none(), "{status:?}: {:?}", std::fs::read_to_string(&log));
        };
        let read = |path: &Path| std::fs::read_to_string(path).ok()?.parse().ok();
        let admin = until("its admin address", &mut gone, || read(&admin));
        let address = until("a listener", &mut gone, || {
            let response = try_get(admin, "/listeners", &[])?;
            response.body.lines().find_map(|line| line.strip_prefix("edge::"))?.parse().ok()
        });
        let envoy = Self { child, address, admin };
        until(
            "readiness",
            || {},
            || {
                let ready = try_get(admin, "/ready", &[])?;
                (ready.status == 200).then_some(())
            },
        );
        envoy
    }

    /// Returns the response to a client on a connection of its own.
    pub(crate) fn get(&self, path: &str, fields: &[&str]) -> Answer {
        try_get(self.address, path, fields).unwrap()
    }

    /// Returns the value of Envoy's counter `name`.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        let response = try_get(self.admin, &format!("/stats?filter=^{name}$"), &[]).unwrap();
        // The response is chunked; the sizes of chunks are on lines of their own.
        let number = |line: &str| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok();
        response.body.lines().find_map(number).unwrap_or(0)
    }

    /// Waits until Envoy's counter `name` is at least `number`.
    pub(crate) fn counts(&self, name: &str, number: u64) {
        until(name, || {}, || (self.counted(name) >= number).then_some(()));
    }

    /// Opens a connection for several requests.
    pub(crate) fn connect(&self) -> Connection {
        Connection(BufReader::new(TcpStream::connect(self.address).unwrap()))
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client's connection to Envoy.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Sends one more request on this connection, and returns the response.
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.get_with(path, b"")
    }

    /// Sends a request like [`Self::get`], with a line of `fields`, which need not be UTF-8.
    pub(crate) fn get_with(&mut self, path: &str, fields: &[u8]) -> Answer {
        let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\n");
        let head = [head.as_bytes(), fields, b"\r\n"].concat();
        self.0.get_mut().write_all(&head).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let length = Answer::parse(head.as_bytes()).field("content-length").parse().unwrap();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        Answer::parse(&[head.as_bytes(), &body].concat())
    }
}

fn try_get(address: SocketAddr, path: &str, fields: &[&str]) -> Option<Answer> {
    let mut client = TcpStream::connect(address).ok()?;
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{fields}\r\n");
    client.write_all(head.as_bytes()).ok()?;
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).ok()?;
    (!answer.is_empty()).then(|| Answer::parse(&answer))
}

fn until<T>(what: &str, mut meanwhile: impl FnMut(), come: impl Fn() -> Option<T>) -> T {
    for _ in 0..TRIES {
        if let Some(it) = come() {
            return it;
        }
        meanwhile();
        sleep(PAUSE);
    }
    panic!("Envoy has not come to {what}");
}

/// Returns the path of Envoy for tests.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/envoy/envoy");
    assert!(
        program.exists(),
        "missing program: {}; crates/tollgate-cli/tests/slow/envoy/install.sh installs it, and so does \
         ./test",
        program.display()
    );
    program
}
