//! Several listeners in one process, with a common shutdown.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::connection::{Connection, ConnectionLimits, Door};
use crate::listen::{Accepted, BACKLOG, Listener};
use crate::on_wake::OnWake;
use crate::places::{Place, Places, Vacancy};
use crate::shutdown::{Phase, Shutdown};

/// A listening socket and the protocol that it serves.
pub struct Served {
    name: &'static str,
    places: Places,
    listen: Box<dyn FnOnce(Shutdown, Places) -> Listening + Send>,
}

type Listening = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Served {
    /// Serves `door` at `listener`. `name` is used in logs and metrics.
    pub fn new<D: Door>(
        name: &'static str,
        listener: Listener,
        limits: ConnectionLimits,
        door: D,
    ) -> Self {
        Self {
            name,
            places: Places::new(name, limits.at_once),
            listen: Box::new(move |shutdown, places| {
                Box::pin(listen(listener, limits, door, shutdown, places))
            }),
        }
    }

    /// Returns the connection slots, to read while it serves.
    #[must_use]
    pub fn places(&self) -> Places {
        self.places.clone()
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Serves all `doors` until `shutdown` resolves, then drains: no more clients are accepted, every
/// request that has arrived is answered, and its connection is closed after that.
///
/// Dropping the future closes all connections at once.
///
/// # Errors
/// [`DrainTimeout`] if clients were still being served after `drain`. Their connections are closed.
pub async fn serve(
    doors: Vec<Served>,
    drain: Duration,
    shutdown: impl Future<Output = ()>,
) -> Result<(), DrainTimeout> {
    let (phase, watched) = Shutdown::new();
    let mut taken = Vec::new();
    let mut listening = tokio::task::JoinSet::new();
    for door in doors {
        taken.push(door.places());
        listening.spawn((door.listen)(watched.clone(), door.places));
    }
    pin!(shutdown).await;
    let ended = end(&phase, listening, &taken, drain).await;
    phase.send_replace(Phase::Cut);
    ended
}

/// Waits until all sockets have stopped accepting, and then until every slot of every listener is
/// free.
async fn end(
    phase: &watch::Sender<Phase>,
    mut listening: tokio::task::JoinSet<()>,
    taken: &[Places],
    drain: Duration,
) -> Result<(), DrainTimeout> {
    phase.send_replace(Phase::Draining);
    let all_free = async {
        // All slots may be free for a moment before the next client of the backlog is accepted, so
        // wait for the accept loops first.
        while listening.join_next().await.is_some() {}
        for places in taken {
            places.all_free().await;
        }
    };
    if timeout(drain, all_free).await.is_ok() {
        return Ok(());
    }
    let left = taken
        .iter()
        .map(|places| (places.door, places.taken()))
        .filter(|(_, left)| *left > 0)
        .collect();
    Err(DrainTimeout { left, waited: drain })
}

/// Passes each client of `listener` that gets a slot to `door`.
async fn listen<D: Door>(
    listener: Listener,
    limits: ConnectionLimits,
    door: D,
    shutdown: Shutdown,
    places: Places,
) {
    let mut ended = shutdown.clone();
    // The slot comes first: a client without one waits in the backlog, where it costs this process
    // nothing.
    let next = async || (places.vacancy().await, listener.accept().await);
    let begin = |(vacancy, accepted): (Vacancy, Accepted)| {
        let place = vacancy.take();
        tokio::spawn(serve_one(accepted, place, limits, door.clone(), shutdown.clone()));
    };
    loop {
        tokio::select! {
            biased;
            () = ended.reached(Phase::Draining) => break,
            next = next() => begin(next),
        }
    }
    // Clients in the backlog are still served, because closing the socket would reset them. The
    // number is bounded by the backlog, or a busy listener would never stop.
    for _ in 0..BACKLOG {
        let Ok(next) = timeout(Duration::ZERO, next()).await else { return };
        begin(next);
    }
}

async fn serve_one<D: Door>(
    accepted: Accepted,
    place: Place,
    limits: ConnectionLimits,
    door: D,
    shutdown: Shutdown,
) {
    let mut phase = shutdown.clone();
    let cut = OnWake::new(phase.reached(Phase::Cut));
    let served = async {
        let peer = accepted.peer;
        if let Ok(Ok(stream)) = timeout(limits.handshake, accepted.handshake()).await {
            door.serve(Connection { stream, peer, shutdown, place }).await;
        }
    };
    tokio::select! {
        biased;
        () = served => {}
        () = cut => {}
    }
}

/// The error that clients were still being served at the end of the drain time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainTimeout {
    /// The number of connections that were left, for each listener.
    pub left: Vec<(&'static str, u32)>,
    /// The drain time.
    pub waited: Duration,
}

impl fmt::Display for DrainTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left: Vec<String> =
            self.left.iter().map(|(name, count)| format!("{count} at {name}")).collect();
        let (left, waited) = (left.join(", "), self.waited.as_secs());
        write!(f, "closed connections that had not ended within {waited} s: {left}")
    }
}

impl std::error::Error for DrainTimeout {}
