//! Many doors, one process, one end.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};

use crate::connection::{Connection, ConnectionLimits, Door, Place};
use crate::listen::{Accepted, BACKLOG, Listener};
use crate::shutdown::{Phase, Shutdown};

/// How often it is told, at most, that a door is full.
const FULL_TOLD_EVERY: Duration = Duration::from_secs(10);

/// A door and where it listens.
pub struct Served {
    name: &'static str,
    places: Places,
    listen: Box<dyn FnOnce(Shutdown, Places) -> Listening + Send>,
}

type Listening = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Served {
    /// `door` at `listener`, called `name` where it is spoken of.
    pub fn new<D: Door>(
        name: &'static str,
        listener: Listener,
        limits: ConnectionLimits,
        door: D,
    ) -> Self {
        Self {
            name,
            places: Places {
                door: name,
                at_once: limits.at_once,
                free: Arc::new(Semaphore::new(limits.at_once as usize)),
                open: Arc::default(),
            },
            listen: Box::new(move |shutdown, places| {
                Box::pin(listen(name, listener, limits, door, shutdown, places))
            }),
        }
    }

    /// How many clients it serves, to be looked at while it does.
    #[must_use]
    pub fn places(&self) -> Places {
        self.places.clone()
    }
}

/// How many clients a door serves, and may serve.
#[derive(Clone, Debug)]
pub struct Places {
    /// The door's name.
    pub door: &'static str,
    /// How many connections there may be at once.
    pub at_once: u32,
    free: Arc<Semaphore>,
    open: Arc<AtomicU32>,
}

impl Places {
    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    /// How many are taken, with the one that the door is ready to give.
    fn taken(&self) -> u32 {
        let free = u32::try_from(self.free.available_permits()).unwrap_or(self.at_once);
        self.at_once.saturating_sub(free)
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Serves through all `doors` until `shutdown` resolves, then drains: no more clients are accepted,
/// every request that came is answered, and its connection closed after it.
///
/// Dropping the future cuts every connection off.
///
/// # Errors
/// [`DrainTimeout`] if clients were still served after `drain`; they are cut off.
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

/// Waits until nobody is accepted any more, and then for every place of every door to be free.
async fn end(
    phase: &watch::Sender<Phase>,
    mut listening: tokio::task::JoinSet<()>,
    taken: &[Places],
    drain: Duration,
) -> Result<(), DrainTimeout> {
    phase.send_replace(Phase::Draining);
    let all_free = async {
        // Places may be free in the middle of that, and be taken by the next in the backlog.
        while listening.join_next().await.is_some() {}
        for places in taken {
            // Never closed, so there is no error.
            let _ = places.free.acquire_many(places.at_once).await;
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

/// Gives each client of `listener` that finds a place to `door`.
async fn listen<D: Door>(
    name: &'static str,
    listener: Listener,
    limits: ConnectionLimits,
    door: D,
    shutdown: Shutdown,
    places: Places,
) {
    let mut ended = shutdown.clone();
    let mut told = None;
    let mut next = async || {
        // A place first: a client that has none waits in the backlog, and costs nothing here.
        if places.free.available_permits() == 0 {
            tell_full(name, limits.at_once, &mut told);
        }
        let place = Arc::clone(&places.free).acquire_owned().await;
        place.ok().zip(Some(listener.accept().await))
    };
    let begin = |(place, accepted): (OwnedSemaphorePermit, Accepted)| {
        let place = Place::take(place, &places.open);
        tokio::spawn(serve_one(accepted, place, limits, door.clone(), shutdown.clone()));
    };
    loop {
        tokio::select! {
            biased;
            () = ended.reached(Phase::Draining) => break,
            Some(next) = next() => begin(next),
        }
    }
    // Who has come already is served: the end of the socket would cut it off. No more than that,
    // or a busy door would never shut.
    for _ in 0..BACKLOG {
        let Ok(Some(next)) = timeout(Duration::ZERO, next()).await else { return };
        begin(next);
    }
}

/// Says that a door is full, once in [`FULL_TOLD_EVERY`]: `told` is when it last did.
fn tell_full(door: &'static str, at_once: u32, told: &mut Option<Instant>) {
    if told.is_some_and(|told| told.elapsed() < FULL_TOLD_EVERY) {
        return;
    }
    *told = Some(Instant::now());
    tracing::warn!(
        door,
        "all {at_once} connections are taken: who comes now waits until one of them ends; look for \
         clients that open many and leave them idle"
    );
}

async fn serve_one<D: Door>(
    accepted: Accepted,
    place: Place,
    limits: ConnectionLimits,
    door: D,
    shutdown: Shutdown,
) {
    let mut cut = shutdown.clone();
    let served = async {
        let peer = accepted.peer;
        if let Ok(Ok(stream)) = timeout(limits.handshake, accepted.handshake()).await {
            door.serve(Connection { stream, peer, shutdown, _place: place }).await;
        }
    };
    tokio::select! {
        () = served => {}
        () = cut.reached(Phase::Cut) => {}
    }
}

/// Clients were still served when the time to end was over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainTimeout {
    /// How many at which door.
    pub left: Vec<(&'static str, u32)>,
    /// How long they had.
    pub waited: Duration,
}

impl fmt::Display for DrainTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left: Vec<String> =
            self.left.iter().map(|(name, count)| format!("{count} at {name}")).collect();
        let (left, waited) = (left.join(", "), self.waited.as_secs());
        write!(f, "connections were cut off that had not ended within {waited} s: {left}")
    }
}

impl std::error::Error for DrainTimeout {}
