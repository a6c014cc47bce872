//! The simulated network: streams in memory, with delays and faults.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use tollgate_conformance::Random;

/// The number of a node, a server or a sentinel in the network.
pub(crate) type Party = usize;

/// The largest number of packets in flight in one direction of a connection. If there are more, the
/// connection breaks.
const PACKETS_IN_FLIGHT: usize = 4_096;

/// The network of a world: the links between nodes, servers and sentinels.
#[derive(Debug)]
pub(crate) struct Network {
    seed: u64,
    start: Instant,
    links: Mutex<Links>,
}

#[derive(Debug)]
struct Links {
    /// The shortest and the longest delay of a packet, in ms.
    delays: (u64, u64),
    /// Additional delays in ms. Each applies to all packets from and to its party.
    slowed: BTreeMap<Party, u64>,
    /// Pairs of a sender and a receiver. Packets from this sender to this receiver are held back.
    blocked: BTreeSet<(Party, Party)>,
    /// The parties that have disappeared. Their connections end without a packet to the other
    /// party.
    silent: BTreeSet<Party>,
    pipes: Vec<Weak<Pipe>>,
}

/// One direction of a connection.
#[derive(Debug)]
struct Pipe {
    from: Party,
    to: Party,
    /// The time at which the connection was opened, in ms since the start.
    opened: u64,
    state: Mutex<PipeState>,
}

#[derive(Debug)]
struct PipeState {
    /// The packets in flight, each with its time of arrival. An empty packet ends the stream.
    packets: VecDeque<(Instant, Vec<u8>)>,
    last: Instant,
    is_reset: bool,
    reader: Option<Waker>,
}

/// One end of a connection, which reads and writes bytes.
#[derive(Debug)]
pub(crate) struct Stream {
    network: Arc<Network>,
    read: Arc<Pipe>,
    write: Arc<Pipe>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Network {
    pub(crate) fn new(seed: u64, delays: (u64, u64)) -> Arc<Self> {
        let links = Links {
            delays,
            slowed: BTreeMap::new(),
            blocked: BTreeSet::new(),
            silent: BTreeSet::new(),
            pipes: Vec::new(),
        };
        Arc::new(Self { seed, start: Instant::now(), links: Mutex::new(links) })
    }

    /// Creates a connection between `from` and `to`. Returns its two ends: first the stream of
    /// `from`, then the stream of `to`.
    pub(crate) fn connection(self: &Arc<Self>, from: Party, to: Party) -> (Stream, Stream) {
        let opened = self.millis();
        let (there, back) = (Pipe::new(from, to, opened), Pipe::new(to, from, opened));
        let mut links = self.links.lock();
        links.pipes.retain(|pipe| pipe.strong_count() > 0);
        links.pipes.extend([Arc::downgrade(&there), Arc::downgrade(&back)]);
        let end = |read: &Arc<Pipe>, write: &Arc<Pipe>| Stream {
            network: Arc::clone(self),
            read: Arc::clone(read),
            write: Arc::clone(write),
            timer: None,
        };
        (end(&back, &there), end(&there, &back))
    }

    /// Returns the milliseconds since the start of the world.
    fn millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the delay of a packet. The packet belongs to the connection that was opened at
    /// `opened` ms.
    ///
    /// The delay depends only on the parties and the times. The order in which the tasks of one ms
    /// run therefore does not change the world.
    pub(crate) fn delay(&self, from: Party, to: Party, opened: u64) -> Duration {
        let links = self.links.lock();
        let (shortest, longest) = links.delays;
        let parts = [from as u64, to as u64, opened, self.millis()];
        let mix = |seed: u64, part: &u64| Random::new(seed ^ part).bits();
        let mut random = Random::new(parts.iter().fold(self.seed, mix));
        let more: u64 = [from, to].iter().filter_map(|party| links.slowed.get(party)).sum();
        Duration::from_millis(random.within(shortest..=longest) + more)
    }

    pub(crate) fn is_blocked(&self, from: Party, to: Party) -> bool {
        self.links.lock().blocked.contains(&(from, to))
    }

    pub(crate) fn is_silent(&self, party: Party) -> bool {
        self.links.lock().silent.contains(&party)
    }

    /// If `is_blocked` is set, holds back all packets from `from` to `to`. Otherwise delivers them,
    /// including those that were held back.
    pub(crate) fn set_blocked(&self, from: Party, to: Party, is_blocked: bool) {
        let pipes = {
            let mut links = self.links.lock();
            if is_blocked {
                links.blocked.insert((from, to));
            } else {
                links.blocked.remove(&(from, to));
            }
            links.pipes.clone()
        };
        pipes.iter().filter_map(Weak::upgrade).for_each(|pipe| pipe.wake());
    }

    /// Sets an additional delay of `millis` for every packet from and to `party`.
    pub(crate) fn set_slow(&self, party: Party, millis: u64) {
        self.links.lock().slowed.insert(party, millis);
    }

    /// Sets whether `party` is silent. The connections of a silent party end without a packet to
    /// the other party, and no new connection to a silent party opens.
    pub(crate) fn set_silent(&self, party: Party, is_silent: bool) {
        let mut links = self.links.lock();
        if is_silent {
            links.silent.insert(party);
        } else {
            links.silent.remove(&party);
        }
    }

    /// Breaks all connections of `party`, at both ends.
    pub(crate) fn reset(&self, party: Party) {
        let pipes: Vec<_> = self.links.lock().pipes.iter().filter_map(Weak::upgrade).collect();
        for pipe in pipes.iter().filter(|pipe| pipe.from == party || pipe.to == party) {
            pipe.state.lock().is_reset = true;
            pipe.wake();
        }
    }
}

impl Pipe {
    fn new(from: Party, to: Party, opened: u64) -> Arc<Self> {
        let state = PipeState {
            packets: VecDeque::new(),
            last: Instant::now(),
            is_reset: false,
            reader: None,
        };
        Arc::new(Self { from, to, opened, state: Mutex::new(state) })
    }

    fn delay(&self, network: &Network) -> Duration {
        network.delay(self.from, self.to, self.opened)
    }

    fn wake(&self) {
        let reader = self.state.lock().reader.take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Sends a packet. The packet arrives after `delay`, but not before the packets that were sent
    /// earlier.
    fn send(&self, delay: Duration, packet: Vec<u8>) {
        {
            let state = &mut *self.state.lock();
            state.last = state.last.max(Instant::now() + delay);
            state.packets.push_back((state.last, packet));
            state.is_reset |= state.packets.len() > PACKETS_IN_FLIGHT;
        }
        self.wake();
    }

    /// Reads bytes that have arrived into `out`. If the next packet is still in flight, returns its
    /// time of arrival. Returns `Nothing` if no packet is in flight, or if `is_blocked` is set,
    /// because then all packets are held back; `reader` is woken when a packet is sent or the block
    /// ends. Returns `Reset` if the connection is broken.
    fn receive(&self, is_blocked: bool, out: &mut ReadBuf<'_>, reader: &Waker) -> Received {
        let state = &mut *self.state.lock();
        if state.is_reset {
            return Received::Reset;
        }
        if !state.reader.as_ref().is_some_and(|known| known.will_wake(reader)) {
            state.reader = Some(reader.clone());
        }
        let Some((arrives, packet)) = state.packets.front_mut().filter(|_| !is_blocked) else {
            return Received::Nothing;
        };
        if *arrives > Instant::now() {
            return Received::Later(*arrives);
        }
        let length = out.remaining().min(packet.len());
        out.put_slice(&packet[..length]);
        packet.drain(..length);
        // The empty packet that marks the end of the stream stays in the queue.
        if packet.is_empty() && length > 0 {
            state.packets.pop_front();
        }
        Received::Bytes
    }
}

enum Received {
    Bytes,
    Nothing,
    Later(Instant),
    Reset,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let is_blocked = this.network.is_blocked(this.read.from, this.read.to);
            let arrives = match this.read.receive(is_blocked, out, context.waker()) {
                Received::Bytes => return Poll::Ready(Ok(())),
                Received::Nothing => return Poll::Pending,
                Received::Reset => {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                Received::Later(arrives) => arrives,
            };
            let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(arrives)));
            if timer.deadline() != arrives {
                timer.as_mut().reset(arrives);
            }
            ready!(timer.as_mut().poll(context));
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.write.state.lock().is_reset {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !bytes.is_empty() {
            let delay = self.write.delay(&self.network);
            self.write.send(delay, bytes.to_vec());
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.network.is_silent(self.write.from) {
            let delay = self.write.delay(&self.network);
            self.write.send(delay, Vec::new());
        }
    }
}
