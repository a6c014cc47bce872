//! `tollgate proxy` in front of a service with a fixed capacity.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::world::{Answer, Proxy};

/// The longest time that the test waits for an event. Even on a busy machine, every event comes
/// earlier.
const PATIENCE: Duration = Duration::from_secs(60);

/// The requests that the service can process at a time. The service responds to one more request
/// with 500.
const CAPACITY: usize = 4;

/// The number of readers, which is three times the capacity of the service.
const READERS: usize = 3 * CAPACITY;

/// Writes a policy with load shedding for the fleet. The capacity is the capacity of the service,
/// and half of it is reserved for critical requests.
fn policy(folder: &Path, mode: &str) {
    let text = format!(
        "limits: {{ all: {{ quota: 1_000_000, window: 1h }} }}\n\
         shed: {{ mode: {mode}, fleet: {{ capacity: {CAPACITY}, reserve_critical: 50% }} }}\n\
         rules:\n  - {{ name: charge, match: {{ method: POST }}, limits: all, priority: critical }}\n  \
         - {{ name: read, limits: all }}\n"
    );
    // The file is renamed into place, so it is never read half written.
    fs::write(folder.join("new.yaml"), text).unwrap();
    fs::rename(folder.join("new.yaml"), folder.join("policy.yaml")).unwrap();
}

#[test]
fn at_three_times_the_capacity_critical_requests_are_served_only_with_shedding() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    for (mode, held, refusal, goodput) in
        [("enforce", CAPACITY / 2, 503, 20), ("off", CAPACITY, 500, 0)]
    {
        policy(folder.path(), mode);
        let service = Service::start();
        let proxy = Arc::new(Proxy::start_at(&service.url(), &path));
        let (teller, response) = channel();
        let readers = (0..READERS).map(|_| {
            let (proxy, teller) = (Arc::clone(&proxy), teller.clone());
            thread::spawn(move || teller.send(proxy.get("/", &[]).status))
        });
        let readers: Vec<_> = readers.collect();
        // Admitted requests stay in flight until the test releases them.
        for _ in held..READERS {
            assert_eq!(response.recv_timeout(PATIENCE).unwrap(), refusal, "{mode}");
        }
        // The requests may be refused before the others have reached the service.
        service.holds(held);
        let served = (0..20).filter(|_| charge(&proxy) == 200).count();
        assert_eq!(served, goodput, "of 20 critical requests, {mode}");
        service.let_go();
        for _ in 0..held {
            assert_eq!(response.recv_timeout(PATIENCE).unwrap(), 200, "{mode}");
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap().unwrap());
    }
}

#[test]
fn the_kill_switch_is_turned_while_requests_run() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    policy(folder.path(), "enforce");
    let service = Service::start();
    let proxy = Arc::new(Proxy::start_at(&service.url(), &path));
    let reader = || {
        let proxy = Arc::clone(&proxy);
        thread::spawn(move || proxy.get("/", &[]).status)
    };
    let mut readers = vec![reader(), reader()];
    service.holds(2);
    let shed = proxy.get("/", &[]);
    assert_eq!((shed.status, shed.field("retry-after")), (503, "1"));
    let problem: serde_json::Value = serde_json::from_str(&shed.body).unwrap();
    assert_eq!(
        (problem["shed-by"].as_str(), problem["status"].as_u64()),
        (Some("fleet"), Some(503))
    );
    assert_eq!(problem["priority"], "read");
    policy(folder.path(), "off");
    proxy.wait_for_log("the policy was reloaded");
    readers.push(reader());
    service.holds(3);
    policy(folder.path(), "enforce");
    proxy.wait_for_log("the policy was reloaded");
    assert_eq!(proxy.get("/", &[]).status, 503);
    service.let_go();
    for reader in readers {
        assert_eq!(reader.join().unwrap(), 200);
    }
}

/// Returns the status of a critical request.
fn charge(proxy: &Proxy) -> u16 {
    let request =
        b"POST /charge HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    Answer::parse(&proxy.send(request)).status
}

/// A service that responds to `POST` immediately, and to other requests when the test releases
/// them. The service runs until the test's process ends.
struct Service {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    in_flight: usize,
    is_let_go: bool,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<(Mutex<State>, Condvar)>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                let state = Arc::clone(&shared);
                thread::spawn(move || client.map(|client| serve(&client, &state)));
            }
        });
        Self { address, state }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until this number of requests is in flight.
    fn holds(&self, count: usize) {
        let (state, changed) = &*self.state;
        let is_waiting = |state: &mut State| state.in_flight < count;
        let waited = changed.wait_timeout_while(state.lock().unwrap(), PATIENCE, is_waiting);
        assert_eq!(waited.unwrap().0.in_flight, count);
    }

    fn let_go(&self) {
        self.state.0.lock().unwrap().is_let_go = true;
        self.state.1.notify_all();
    }
}

fn serve(client: &TcpStream, state: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    let mut lines = BufReader::new(client).lines();
    while let Some(request) = lines.next() {
        let request = request?;
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let status = answer(&request, state);
        // The permit is free before the response is sent.
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        (&*client).write_all(answer.as_bytes())?;
    }
    Ok(())
}

fn answer(request: &str, (state, changed): &(Mutex<State>, Condvar)) -> &'static str {
    let mut taken = state.lock().unwrap();
    if taken.in_flight >= CAPACITY {
        return "500 Overrun";
    }
    taken.in_flight += 1;
    changed.notify_all();
    if !request.starts_with("POST") {
        let is_held = |state: &mut State| !state.is_let_go;
        taken = changed.wait_timeout_while(taken, PATIENCE, is_held).unwrap().0;
    }
    taken.in_flight -= 1;
    "200 OK"
}
