//! The network, the random numbers and the measurements of a simulation.
//!
//! `tollgate-sim` runs nodes and servers in one thread. It provides the connections of each node,
//! and a seed for all numbers that are random outside of a simulation. Only the feature
//! `simulation` compiles this module, and no shipped build enables this feature.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// A stream of bytes that can be read and written.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// A future that opens a connection, or returns the error of the attempt.
pub type Connecting<'a> =
    Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send + 'a>>;

/// The network of one simulated node.
pub trait Network: fmt::Debug + Send + Sync {
    /// Connects to `host`, without a time limit.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;
}

thread_local! {
    static NETWORK: RefCell<Option<Arc<dyn Network>>> = const { RefCell::new(None) };
    static SEED: Cell<Option<(u64, Instant)>> = const { Cell::new(None) };
    static LONGEST_QUEUE: Cell<usize> = const { Cell::new(0) };
}

/// Calls `open`, and returns its result. The endpoints that `open` creates connect through
/// `network`.
pub fn with_network<T>(network: Arc<dyn Network>, open: impl FnOnce() -> T) -> T {
    let before = NETWORK.replace(Some(network));
    let opened = open();
    NETWORK.set(before);
    opened
}

/// Seeds the random numbers of this thread with `seed`. Call this function within the runtime of
/// the simulation.
pub fn set_seed(seed: u64) {
    SEED.set(Some((seed, Instant::now())));
}

/// Records that a queue of this thread has `length` jobs.
pub fn record_queue(length: usize) {
    LONGEST_QUEUE.set(LONGEST_QUEUE.get().max(length));
}

/// Returns the largest number of jobs that a queue of this thread has had since the last call.
#[must_use]
pub fn take_longest_queue() -> usize {
    LONGEST_QUEUE.take()
}

/// The simulated network through which an endpoint connects: the network of [`with_network`] when
/// the endpoint was created. If the value is `None`, the endpoint uses the real network.
#[derive(Clone, Debug)]
pub struct CapturedNetwork(pub Option<Arc<dyn Network>>);

impl Default for CapturedNetwork {
    fn default() -> Self {
        Self(NETWORK.with_borrow(Clone::clone))
    }
}

/// Returns the random number for the current simulated time, or `None` if this thread has no seed.
/// The number depends only on the seed and the time, so the order of tasks that run at the same
/// time has no effect.
///
/// Source: the mixer of `SplitMix64` (Steele, Lea and Flood, 2014).
#[must_use]
pub fn draw() -> Option<u64> {
    let (seed, start) = SEED.get()?;
    let passed = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut bits = seed.wrapping_add(passed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Some(bits ^ (bits >> 31))
}
