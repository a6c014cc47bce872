//! Restarts under load.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::client::Client;
use crate::world::{Folder, Node, command};

/// Clients of each kind at once.
const CLIENTS: usize = 8;

/// Restarts in a row.
const RESTARTS: usize = 3;

/// Requests that every client has to see answered before the next restart.
const BETWEEN: u64 = 20;

/// The service manager keeps the sockets: whoever comes waits for the next process.
#[test]
fn sockets_of_the_service_manager_lose_nobody() {
    let folder = Folder::new("");
    let (http, resp) = (socket(), socket());
    let policy = folder.policy();
    let mut node = Node::start(given(&policy, &http, &resp));
    let load = Load::start(&address(&http), &address(&resp));
    for _ in 0..RESTARTS {
        load.goes_on();
        node.signal("-TERM");
        let next = Node::start(given(&policy, &http, &resp));
        let (code, told) = std::mem::replace(&mut node, next).ended();
        assert_eq!(code, Some(0), "{told}");
    }
    load.goes_on();
    assert_eq!(load.end(), 0, "lost");
}

/// The next process listens before the last one ends. Who connects in the very moment in which the
/// last one closes its socket may be reset, before a byte was sent: at most one for each client.
#[test]
fn a_shared_port_loses_no_request_that_was_accepted() {
    let folder = Folder::new("");
    let (policy, reuse) = (folder.policy(), "--reuse-port");
    let any = "127.0.0.1:0";
    let mut node = Node::start(command(&policy, &["--http", any, "--resp", any, reuse]));
    let (http, resp) = (node.door("http").to_owned(), node.door("resp").to_owned());
    let load = Load::start(&http, &resp);
    for _ in 0..RESTARTS {
        load.goes_on();
        let next = Node::start(command(&policy, &["--http", &http, "--resp", &resp, reuse]));
        node.signal("-TERM");
        let (code, told) = std::mem::replace(&mut node, next).ended();
        assert_eq!(code, Some(0), "{told}");
    }
    load.goes_on();
    let lost = load.end();
    assert!(lost <= (2 * CLIENTS * RESTARTS) as u64, "{lost} connections reset");
}

fn socket() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn address(socket: &TcpListener) -> String {
    socket.local_addr().unwrap().to_string()
}

/// A process that is given both sockets, as the service manager gives them: from descriptor 3 on.
fn given(policy: &Path, http: &TcpListener, resp: &TcpListener) -> Command {
    let fd = |socket: &TcpListener| Stdio::from(OwnedFd::from(socket.try_clone().unwrap()));
    let script = "exec 3<&0 4>&1 </dev/null >/dev/null; LISTEN_PID=$$ exec \"$0\" \"$@\"";
    let node = command(policy, &["--http", "systemd:http", "--resp", "systemd:resp"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(node.get_program()).args(node.get_args()).arg("--insecure");
    shell.env("LISTEN_FDS", "2").env("LISTEN_FDNAMES", "http:resp");
    shell.stdin(fd(http)).stdout(fd(resp));
    shell
}

/// Clients that ask until they are stopped, each in its way.
struct Load {
    clients: Vec<(JoinHandle<u64>, Arc<AtomicU64>)>,
    is_over: Arc<AtomicBool>,
}

impl Load {
    fn start(http: &str, resp: &str) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let works = [(http, keep as Work), (http, ask_once), (resp, throttle_once)];
        let client = |(address, work): (&str, Work)| {
            let (answered, address) = (Arc::new(AtomicU64::new(0)), address.to_owned());
            let (count, is_over) = (Arc::clone(&answered), Arc::clone(&is_over));
            let client = thread::spawn(move || {
                let mut lost = 0;
                while !is_over.load(Ordering::Relaxed) {
                    lost += work(&address, &count);
                }
                lost
            });
            (client, answered)
        };
        let clients = works.iter().flat_map(|work| [*work; CLIENTS]).map(client).collect();
        Self { clients, is_over }
    }

    /// Waits until every client was answered some times more.
    fn goes_on(&self) {
        for (client, answered) in &self.clients {
            let until = answered.load(Ordering::Relaxed) + BETWEEN;
            while answered.load(Ordering::Relaxed) < until {
                assert!(!client.is_finished(), "a request failed");
                thread::yield_now();
            }
        }
    }

    /// How many connections were reset before they were used.
    fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.clients.into_iter().map(|(client, _)| client.join().unwrap()).sum()
    }
}

/// Asks, counts what is answered, and says how many connections nobody took.
type Work = fn(&str, &AtomicU64) -> u64;

/// Many requests on one connection, until it says that one was the last; nothing but the first may
/// find that nobody is there.
fn keep(address: &str, answered: &AtomicU64) -> u64 {
    let Ok(mut client) = Client::connect(address) else { return 1 };
    for asked in 0..100 {
        match client.check() {
            Ok(answer) => {
                assert_eq!(answer.status, 200);
                answered.fetch_add(1, Ordering::Relaxed);
                if answer.is_last {
                    break;
                }
            }
            Err(_) if asked == 0 => return 1,
            Err(error) => panic!("request {asked} of a connection: {error}"),
        }
    }
    0
}

fn ask_once(address: &str, answered: &AtomicU64) -> u64 {
    let answer = Client::connect(address).and_then(|mut client| client.check());
    let Ok(answer) = answer else { return 1 };
    assert_eq!(answer.status, 200);
    answered.fetch_add(1, Ordering::Relaxed);
    0
}

fn throttle_once(address: &str, answered: &AtomicU64) -> u64 {
    let replies = Client::connect(address).and_then(|mut client| client.throttle());
    let Ok(()) = replies else { return 1 };
    answered.fetch_add(1, Ordering::Relaxed);
    0
}
