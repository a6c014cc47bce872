//! A memcached server for one test. The server ends with the test.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Subject, Value};
use tollgate_memcached::{Address, Keys, LinkLimits, Memcached, ServerSettings};

/// The most attempts to find a free port. Another process may take a free port before the server
/// does.
const PORT_TRIES: usize = 10;
/// The most checks whether a starting server is ready. `READY_PAUSE` is the pause between two
/// checks.
const READY_TRIES: usize = 500;
const READY_PAUSE: Duration = Duration::from_millis(20);
/// The time limit of each wait of a test. A busy machine does not reach this limit.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a free loopback port.
pub struct Server {
    child: Child,
    port: u16,
    arguments: Vec<String>,
}

impl Server {
    /// Starts a server and waits until the server answers.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server like [`Self::start`], with additional arguments such as `-m 1`.
    pub fn start_with(arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        for _ in 0..PORT_TRIES {
            let port = free_port();
            let mut server =
                Self { child: run(port, &arguments), port, arguments: arguments.clone() };
            if server.is_ready() {
                return server;
            }
        }
        panic!("memcached {arguments:?} did not start on any of {PORT_TRIES} ports");
    }

    /// Kills the process and starts another process on the same port. The new process has no items.
    pub fn restart(&mut self) {
        self.kill();
        self.revive();
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }

    /// Starts another process after [`kill`](Self::kill).
    pub fn revive(&mut self) {
        self.child = run(self.port, &self.arguments);
        assert!(self.is_ready(), "memcached did not start again on port {}", self.port);
    }

    /// Ends the process. If the arguments contain a memory file (`-e`), the items stay for the next
    /// process with the same arguments.
    pub fn end(&mut self) {
        self.signal("-USR1");
        let ended = self.child.wait().expect("a child");
        assert!(ended.success(), "memcached: {ended}");
    }

    /// Stops the process until a call of [`thaw`](Self::thaw). The sockets of the process stay
    /// open.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets the stopped process continue.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Returns the server's address.
    pub fn address(&self) -> Address {
        Address::Tcp { host: "127.0.0.1".into(), port: self.port }
    }

    /// Returns the lines of the answer to `command`, up to the line that ends an answer.
    pub fn execute(&self, command: &str) -> Vec<String> {
        self.try_execute(command).expect("an answer")
    }

    /// Returns settings with long timeouts, so only the faults of a test itself delay an answer.
    pub fn settings(&self) -> ServerSettings {
        ServerSettings { link: patient(), ..ServerSettings::new(self.address()) }
    }

    /// Returns a connected store on this server.
    pub async fn store(&self) -> Memcached {
        connected(&self.settings()).await
    }

    fn try_execute(&self, command: &str) -> std::io::Result<Vec<String>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        let mut answer = Vec::new();
        for line in BufReader::new(stream).lines() {
            let line = line?;
            let goes_on = ["STAT ", "VALUE ", "VA ", "key="].iter().any(|it| line.starts_with(it));
            // The value follows the line that announces it.
            let follows = answer.last().is_some_and(|last: &String| last.starts_with("VA"));
            answer.push(line);
            if !goes_on && (!follows || answer[answer.len() - 2].starts_with("VA ")) {
                break;
            }
        }
        Ok(answer)
    }

    fn is_ready(&mut self) -> bool {
        for _ in 0..READY_TRIES {
            if self.child.try_wait().expect("a child").is_some() {
                return false;
            }
            if self.try_execute("mn").is_ok_and(|answer| answer == ["MN"]) {
                return true;
            }
            std::thread::sleep(READY_PAUSE);
        }
        false
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().expect("kill");
        assert!(sent.success(), "kill {signal} {id}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(port: u16, arguments: &[String]) -> Child {
    Command::new("memcached")
        // memcached does not run as root unless an argument names another user.
        .args(["-u", "nobody", "-U", "0", "-l", "127.0.0.1", "-p", &port.to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("memcached: {error}; ./test installs what is missing"))
}

/// Returns a free loopback port. Another process may take the port before the server does.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// Returns timeouts that a busy machine does not reach.
pub fn patient() -> LinkLimits {
    LinkLimits {
        seek: PATIENCE,
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        ..LinkLimits::default()
    }
}

/// Returns a connected store on the server of `settings`, with a deadline that no test reaches.
pub async fn connected(settings: &ServerSettings) -> Memcached {
    let store = Memcached::open(settings, Keys::new(PlainHash)).with_deadline(PATIENCE);
    store.ready(PATIENCE).await.expect("a connection");
    store
}

/// Creates a fixed window that starts with the first request.
pub fn window(name: &str, quota: u64, window: Millis) -> Limit {
    let window = FixedWindow::new(quota, window, Anchor::FirstRequest).expect("a window");
    Limit::new(name, Algorithm::FixedWindow(window)).expect("a name")
}

/// Returns the subject called `name`.
pub fn subject(name: &str) -> Subject {
    Subject::new([("user", Value::Clear(name.as_bytes()))], &PlainHash)
}

/// Returns a charge of one unit.
pub fn take<'c>(limit: &'c Limit, subject: &'c Subject) -> Charge<'c> {
    Charge { limit, subject, operation: Operation::Charge { cost: Cost::ONE, id: ChargeId(1) } }
}
