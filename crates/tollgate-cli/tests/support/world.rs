//! A service, the proxy in front of it, and a client that uses plain HTTP.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The longest time that a test waits for an event. Even on a busy machine, every event comes
/// earlier.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the path of a file under `policies/`.
pub(crate) fn policy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies").join(name)
}

/// Runs the binary to its end.
pub(crate) fn tollgate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tollgate")).args(arguments).output().unwrap()
}

/// A process of `tollgate proxy` in front of a service of this test. The process is stopped when
/// this value is dropped.
pub(crate) struct Proxy {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The log lines of the proxy.
    response: Mutex<Receiver<String>>,
}

impl Proxy {
    pub(crate) fn start(policy: &Path) -> Self {
        Self::start_at(&format!("http://{}", service()), policy)
    }

    pub(crate) fn start_at(upstream: &str, policy: &Path) -> Self {
        let mut proxy = Self::spawn(upstream, policy);
        proxy.listens();
        proxy
    }

    /// Starts a proxy at `listen` with additional `flags`.
    pub(crate) fn start_with(listen: &str, upstream: &str, policy: &Path, flags: &[&str]) -> Self {
        let mut proxy = Self::spawn_with(listen, upstream, policy, flags);
        proxy.listens();
        proxy
    }

    /// Starts a proxy without waiting for its listener.
    pub(crate) fn spawn(upstream: &str, policy: &Path) -> Self {
        Self::spawn_with("127.0.0.1:0", upstream, policy, &[])
    }

    /// Starts a proxy with additional `flags`, without waiting for its listener.
    pub(crate) fn spawn_with(listen: &str, upstream: &str, policy: &Path, flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["proxy", "--listen", listen, "--upstream", upstream])
            .args(flags)
            .arg("--policy")
            .arg(policy)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let response = Mutex::new(lines(child.stderr.take().unwrap()));
        // For a port that the proxy chooses; until it is known, any address is valid.
        Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)), response }
    }

    /// Waits until the proxy listens, and returns the log line about it.
    pub(crate) fn listens(&mut self) -> String {
        let line = self.wait_for_log("listening on http");
        let (_, address) = line.split_once("://").unwrap();
        self.address = address.split(',').next().unwrap().parse().unwrap();
        line
    }

    /// Waits until the proxy logs a line that contains `words`, and returns the line.
    pub(crate) fn wait_for_log(&self, words: &str) -> String {
        let response = self.response.lock().unwrap();
        let mut before = String::new();
        loop {
            match response.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => before.push_str(&line),
                Err(RecvTimeoutError::Timeout) => panic!("no word of {words:?} after:\n{before}"),
                Err(RecvTimeoutError::Disconnected) => panic!("no {words:?} in:\n{before}"),
            }
        }
    }

    pub(crate) fn get(&self, path: &str, fields: &[&str]) -> Answer {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n");
        Answer::parse(&self.send(head.as_bytes()))
    }

    /// Sends bytes on a connection of their own, and returns the response until the connection
    /// closes.
    pub(crate) fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let mut client = TcpStream::connect(self.address).unwrap();
        // A proxy that has read enough may close before everything is written.
        let _ = client.write_all(bytes);
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        answer
    }

    /// Sends SIGHUP to the proxy.
    pub(crate) fn hang_up(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    }

    /// Sends SIGTERM to the proxy and waits for its end. Returns its last log lines and the exit
    /// code.
    pub(crate) fn terminate(mut self) -> (String, Option<i32>) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let last_words = self.response.lock().unwrap().iter().collect();
        (last_words, self.child.wait().unwrap().code())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends each line of `response` with its line end as soon as the line is printed.
fn lines(response: ChildStderr) -> Receiver<String> {
    let (teller, lines) = channel();
    std::thread::spawn(move || {
        let mut response = BufReader::new(response);
        let mut line = String::new();
        while response.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            if teller.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    lines
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    fields: HashMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let field = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_lowercase(), value.trim().to_owned())
        };
        Self { status, fields: lines.map(field).collect(), body: body.to_owned() }
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// Starts a service with one page and one entity tag, which ends with the test's process.
pub(crate) fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            std::thread::spawn(move || client.map(|client| serve(&client)));
        }
    });
    address
}

fn serve(client: &TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(client).lines();
    loop {
        let mut known = false;
        loop {
            match lines.next() {
                None => return Ok(()),
                Some(line) => match line?.to_lowercase().as_str() {
                    "" => break,
                    line => known |= line == "if-none-match: \"tag\"",
                },
            }
        }
        let answer = if known {
            "HTTP/1.1 304 Not Modified\r\netag: \"tag\"\r\n\r\n"
        } else {
            "HTTP/1.1 200 OK\r\netag: \"tag\"\r\ncontent-length: 5\r\n\r\nhello"
        };
        (&*client).write_all(answer.as_bytes())?;
    }
}
