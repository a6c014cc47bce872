//! Clients of two nodes. If one node does not accept connections, its clients use the other node.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::support::client::{Answer, Client};
use crate::support::world::PATIENCE;

/// The number of clients. Half of the clients keep their connections, and the others open a
/// connection for each request.
pub(crate) const CLIENTS: usize = 8;

/// The number of requests that each client sends between two events of a test.
const BETWEEN: u64 = 10;

/// The results of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    /// Admitted requests, according to the responses.
    pub(crate) charged: u64,
    pub(crate) refunded: u64,
    /// Unexpected responses.
    pub(crate) failed: u64,
    /// Refused connections, on which nothing was sent.
    pub(crate) found_nobody: u64,
    /// Connections that ended before the first byte of a response. Their requests were repeated.
    pub(crate) unheard: u64,
}

impl Sum {
    fn plus(self, other: Self) -> Self {
        Self {
            charged: self.charged + other.charged,
            refunded: self.refunded + other.refunded,
            failed: self.failed + other.failed,
            found_nobody: self.found_nobody + other.found_nobody,
            unheard: self.unheard + other.unheard,
        }
    }
}

/// The state that all clients share: the addresses of the nodes, and whether the clients stop.
struct Street {
    addresses: [Mutex<String>; 2],
    is_over: AtomicBool,
    visits: [AtomicU64; CLIENTS],
}

/// All clients of a test.
pub(crate) struct Visitors {
    street: Arc<Street>,
    clients: Vec<JoinHandle<Sum>>,
}

impl Visitors {
    /// Starts clients that send requests to the nodes at `addresses` continuously.
    pub(crate) fn begin(addresses: [String; 2], visit: fn(&mut Visitor)) -> Self {
        let street = Arc::new(Street {
            addresses: addresses.map(Mutex::new),
            is_over: AtomicBool::new(false),
            visits: Default::default(),
        });
        let client = |number: usize| {
            let street = Arc::clone(&street);
            thread::spawn(move || {
                let mut visitor = Visitor::new(&street, number);
                while !street.is_over.load(Ordering::Relaxed) {
                    visit(&mut visitor);
                    street.visits[number].fetch_add(1, Ordering::Relaxed);
                }
                visitor.sum
            })
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self { street, clients }
    }

    /// Sets the new address of the node with this number.
    pub(crate) fn find(&self, number: usize, address: String) {
        *self.street.addresses[number].lock().unwrap() = address;
    }

    /// Waits until each client has sent some more requests.
    pub(crate) fn go_on(&self) {
        let deadline = Instant::now() + PATIENCE;
        for (visits, client) in self.street.visits.iter().zip(&self.clients) {
            let until = visits.load(Ordering::Relaxed) + BETWEEN;
            while visits.load(Ordering::Relaxed) < until {
                assert!(!client.is_finished() && Instant::now() < deadline, "a client is stuck");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Returns the results of all requests.
    pub(crate) fn end(self) -> Sum {
        self.street.is_over.store(true, Ordering::Relaxed);
        let sums = self.clients.into_iter().map(|client| client.join().unwrap());
        sums.fold(Sum::default(), Sum::plus)
    }
}

/// One client.
pub(crate) struct Visitor<'s> {
    street: &'s Street,
    /// The index of the node that the client uses.
    at: usize,
    connection: Option<Client>,
    keeps: &'static str,
    sum: Sum,
}

impl<'s> Visitor<'s> {
    fn new(street: &'s Street, number: usize) -> Self {
        let keeps = if number < CLIENTS / 2 { "" } else { "connection: close\r\n" };
        Self { street, at: number % 2, connection: None, keeps, sum: Sum::default() }
    }

    pub(crate) fn sum(&mut self) -> &mut Sum {
        &mut self.sum
    }

    /// Repeats a request until it is answered. After a connection has ended, the next node is used.
    pub(crate) fn send(&mut self, line: &str, fields: &str, body: &str) -> Answer {
        let length = body.len();
        let keeps = self.keeps;
        let request = format!(
            "{line}\r\nhost: localhost\r\n{keeps}{fields}content-length: {length}\r\n\r\n{body}"
        );
        loop {
            let Some(mut connection) = self.connect() else { continue };
            if let Ok(answer) = exchange(&mut connection, &request) {
                if answer.is_last {
                    self.at = 1 - self.at;
                } else {
                    self.connection = Some(connection);
                }
                return answer;
            }
            self.sum.unheard += 1;
            self.at = 1 - self.at;
        }
    }

    fn connect(&mut self) -> Option<Client> {
        if let Some(kept) = self.connection.take() {
            return Some(kept);
        }
        let address = self.street.addresses[self.at].lock().unwrap().clone();
        let connected = Client::connect(&address);
        if connected.is_err() {
            self.sum.found_nobody += 1;
            self.at = 1 - self.at;
        }
        connected.ok()
    }
}

fn exchange(connection: &mut Client, request: &str) -> io::Result<Answer> {
    connection.send(request)?;
    connection.answer()
}
