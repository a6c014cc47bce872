//! A network with a configurable round trip, which delays some packets.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// The most packets in transit in one direction of one connection.
const IN_TRANSIT: usize = 1_024;

/// The transit times of packets.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// The transit time in each direction.
    pub one_way: Duration,
    /// The interval of delayed replies: one in this many replies is delayed, and later replies wait
    /// for the delayed reply. If zero, no reply is delayed.
    pub stall_every: u64,
    /// The additional time of a delayed reply.
    pub stall: Duration,
}

/// Forwards packets after their transit time. The packets of a connection stay in order, as in TCP.
///
/// The proxy runs on threads of its own, because a runtime's timers are too coarse for a round
/// trip.
pub struct LatencyProxy {
    port: u16,
    has_ended: Arc<AtomicBool>,
}

impl LatencyProxy {
    /// Starts a network between a free port and the port `server` on 127.0.0.1.
    pub fn start(server: u16, latency: Latency) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let has_ended = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&has_ended);
        thread::spawn(move || {
            let replies = Arc::<AtomicU64>::default();
            let none = Latency { stall_every: 0, ..latency };
            for client in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let clone = |stream: &TcpStream| stream.try_clone().expect("a socket");
                pass(clone(&client), clone(&server), none, Arc::default());
                pass(server, client, latency, Arc::clone(&replies));
            }
        });
        Self { port, has_ended }
    }

    /// Returns the URL of the server behind the network.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for LatencyProxy {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        // Wakes the listening thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, latency: Latency, count: Arc<AtomicU64>) {
    let _ = to.set_nodelay(true);
    let (in_transit, arriving) = sync_channel::<(Instant, Vec<u8>)>(IN_TRANSIT);
    thread::spawn(move || {
        while let Ok((due, bytes)) = arriving.recv() {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let is_stalled = latency.stall_every > 0 && number.is_multiple_of(latency.stall_every);
            let delay = if is_stalled { latency.stall } else { Duration::ZERO };
            let due = Instant::now() + latency.one_way + delay;
            if in_transit.send((due, bytes[..length].to_vec())).is_err() {
                return;
            }
        }
    });
}
