//! A network with a round trip, in which some packets are delayed.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// The packets of one direction of one connection that are on their way.
const ON_THE_WAY: usize = 1_024;

/// How long packets take.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// The time to the server, and the time back.
    pub one_way: Duration,
    /// Every so many replies, one is delayed; 0 for none. What follows it waits behind it.
    pub stall_every: u64,
    /// By how much.
    pub stall: Duration,
}

/// Passes packets on after a time. Those of a connection stay in order, as TCP keeps them.
///
/// It runs on threads of its own: a runtime's timers are too coarse for a round trip.
pub struct LatencyProxy {
    port: u16,
    has_ended: Arc<AtomicBool>,
}

impl LatencyProxy {
    /// A network between its own port and `server` on 127.0.0.1.
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

    /// Where clients reach the server through it.
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
    let (on_the_way, arriving) = sync_channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
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
            if on_the_way.send((due, bytes[..length].to_vec())).is_err() {
                return;
            }
        }
    });
}
