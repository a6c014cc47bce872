//! Restarts under load.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tollgate_conformance::{Figure, assert_held};

use crate::support::client::Client;
use crate::support::grpc::GrpcClient;
use crate::support::node::{Folder, Node, command};

/// Concurrent clients of each kind.
const CLIENTS: usize = 8;

/// The number of restarts, one after the other.
const RESTARTS: usize = 3;

/// Responses that every client must receive before the next restart.
const BETWEEN: u64 = 20;

/// The pause of a client after a response. Without pauses, the clients would take the processor from
/// the starting process and from other tests.
const PAUSE: Duration = Duration::from_millis(4);

/// The kinds of clients of each listener.
const HTTP: [Work; 2] = [keep, ask_once];
const GRPC: [Work; 2] = [keep_calling, call_once];
const RESP: [Work; 1] = [throttle_once];

/// systemd keeps the sockets open, so new connections wait for the next process.
#[test]
fn sockets_of_the_service_manager_lose_nobody_over_http_and_resp() {
    sockets_lose_nobody([("http", &HTTP), ("resp", &RESP)]);
}

#[test]
fn sockets_of_the_service_manager_lose_nobody_over_grpc() {
    sockets_lose_nobody([("http", &HTTP), ("grpc", &GRPC)]);
}

fn sockets_lose_nobody(listeners: [(&str, &[Work]); 2]) {
    let folder = Folder::new("");
    let policy = folder.policy();
    let sockets =
        listeners.map(|(listener, _)| (listener, TcpListener::bind("127.0.0.1:0").unwrap()));
    let mut node = Node::start(given(&policy, &sockets));
    let addresses = sockets.each_ref().map(|(_, socket)| socket.local_addr().unwrap().to_string());
    let load = Load::start(addresses.iter().zip(listeners.map(|(_, works)| works)));
    let mut ended = 0;
    for _ in 0..RESTARTS {
        load.goes_on();
        node.signal("-TERM");
        let next = Node::start(given(&policy, &sockets));
        let (code, response) = std::mem::replace(&mut node, next).ended();
        assert_eq!(code, Some(0), "{response}");
        ended += 1;
    }
    load.goes_on();
    assert_held(&[
        Figure::fault_seen("processes ended under load", ended),
        Figure::at_most("connections that nobody took", load.end(), 0),
    ]);
}

/// Returns the command of a process that inherits both sockets as systemd passes them, from
/// descriptor 3 on.
fn given(policy: &Path, sockets: &[(&str, TcpListener); 2]) -> Command {
    let [first, second] = sockets
        .each_ref()
        .map(|(_, socket)| Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
    let names = sockets.each_ref().map(|(listener, _)| *listener);
    let flags = names.map(|name| [format!("--{name}"), format!("systemd:{name}")]);
    let script = "exec 3<&0 4>&1 </dev/null >/dev/null; LISTEN_PID=$$ exec \"$0\" \"$@\"";
    let flags: Vec<&str> = flags.as_flattened().iter().map(String::as_str).collect();
    let node = command(policy, &flags);
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(node.get_program()).args(node.get_args()).arg("--insecure");
    shell.env("LISTEN_FDS", "2").env("LISTEN_FDNAMES", names.join(":"));
    shell.stdin(first).stdout(second);
    shell
}

/// The next process listens before the last process ends. If a connection is opened at the time at
/// which the last process closes its socket, the connection may be reset before a byte was sent.
/// This may happen at most once for each client.
#[test]
fn a_shared_port_loses_no_request_that_was_accepted() {
    let folder = Folder::new("");
    let policy = folder.policy();
    let any = "127.0.0.1:0";
    let start = |[http, grpc, resp]: [&str; 3]| {
        let flags = ["--http", http, "--grpc", grpc, "--resp", resp, "--reuse-port"];
        Node::start(command(&policy, &flags))
    };
    let mut node = start([any; 3]);
    let listeners = ["http", "grpc", "resp"].map(|listener| node.listener(listener).to_owned());
    let works = [&HTTP[..], &GRPC, &RESP];
    let load = Load::start(listeners.iter().zip(works));
    let mut ended = 0;
    for _ in 0..RESTARTS {
        load.goes_on();
        let next = start(listeners.each_ref().map(String::as_str));
        node.signal("-TERM");
        let (code, response) = std::mem::replace(&mut node, next).ended();
        assert_eq!(code, Some(0), "{response}");
        ended += 1;
    }
    load.goes_on();
    let most = load.clients.len() as u64 * ended;
    assert_held(&[
        Figure::fault_seen("processes ended under load", ended),
        Figure::at_most("connections reset before a byte was sent", load.end(), most),
    ]);
}

/// Clients of several kinds that send requests until they are stopped.
struct Load {
    clients: Vec<(JoinHandle<u64>, Arc<AtomicU64>)>,
    is_over: Arc<AtomicBool>,
}

impl Load {
    /// Starts some clients of each kind at each address.
    fn start<'a>(listeners: impl Iterator<Item = (&'a String, &'a [Work])>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let works =
            listeners.flat_map(|(address, works)| works.iter().map(move |work| (address, *work)));
        let client = |(address, work): (&String, Work)| {
            let (answered, address) = (Arc::new(AtomicU64::new(0)), address.clone());
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
        let clients = works.flat_map(|work| [work; CLIENTS]).map(client).collect();
        Self { clients, is_over }
    }

    /// Waits until every client has received some more responses.
    fn goes_on(&self) {
        let of = |answered: &AtomicU64| answered.load(Ordering::Relaxed) + BETWEEN;
        let until: Vec<u64> = self.clients.iter().map(|(_, answered)| of(answered)).collect();
        for ((client, answered), until) in self.clients.iter().zip(until) {
            while answered.load(Ordering::Relaxed) < until {
                assert!(!client.is_finished(), "a request failed");
                thread::sleep(PAUSE);
            }
        }
    }

    /// Stops the clients. Returns the number of connections that were reset before they were used.
    fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.clients.into_iter().map(|(client, _)| client.join().unwrap()).sum()
    }
}

/// The work of a client: it sends requests, counts the responses, and returns the number of
/// connections that were not accepted.
type Work = fn(&str, &AtomicU64) -> u64;

/// Sends many requests on one connection, until a response announces that it is the last one. Only
/// the first request may fail because the connection was not accepted.
fn keep(address: &str, answered: &AtomicU64) -> u64 {
    let Ok(mut client) = Client::connect(address) else { return 1 };
    for requested in 0..100 {
        match client.check() {
            Ok(answer) => {
                assert_eq!(answer.status, 200);
                count(answered);
                if answer.is_last {
                    break;
                }
            }
            Err(_) if requested == 0 => return 1,
            Err(error) => panic!("request {requested} of a connection: {error}"),
        }
    }
    0
}

fn ask_once(address: &str, answered: &AtomicU64) -> u64 {
    let answer = Client::connect(address).and_then(|mut client| client.check());
    let Ok(answer) = answer else { return 1 };
    assert_eq!(answer.status, 200);
    count(answered);
    0
}

/// Like [`keep`], over gRPC, until the connection accepts no more calls.
fn keep_calling(address: &str, answered: &AtomicU64) -> u64 {
    let Ok(mut client) = GrpcClient::connect(address) else { return 1 };
    for called in 0..100 {
        match client.check() {
            Ok(true) => count(answered),
            // Without a response, the connection was not accepted.
            Ok(false) => return u64::from(called == 0),
            Err(_) if called == 0 => return 1,
            Err(error) => panic!("call {called} of a connection: {error}"),
        }
    }
    0
}

fn call_once(address: &str, answered: &AtomicU64) -> u64 {
    let called = GrpcClient::connect(address).map(|mut client| client.check());
    let Ok(Ok(true)) = called else { return 1 };
    count(answered);
    0
}

fn throttle_once(address: &str, answered: &AtomicU64) -> u64 {
    let replies = Client::connect(address).and_then(|mut client| client.throttle());
    let Ok(()) = replies else { return 1 };
    count(answered);
    0
}

/// Counts a response, and pauses the client.
fn count(answered: &AtomicU64) {
    answered.fetch_add(1, Ordering::Relaxed);
    thread::sleep(PAUSE);
}
