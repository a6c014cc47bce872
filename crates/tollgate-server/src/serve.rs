//! Several listeners in one process, with a common shutdown.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tollgate_http::{Accepted, Admission, Phase, PollOnWake, Shutdown, accept};

use crate::connection::{Connection, ConnectionHandler, ConnectionLimits};
use crate::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::listen::Listener;

/// The longest wait for the end of connections that were cut off. Their ends release the permits of
/// their requests, and the caller may stop the runtime when [`serve`] returns.
const CUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A listening socket and the protocol that it serves.
pub struct Served {
    name: &'static str,
    slots: ConnectionSlots,
    listen: Box<dyn FnOnce(Shutdown, ConnectionSlots) -> Listening + Send>,
}

type Listening = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Served {
    /// Creates an entry for [`serve`], in which `handler` serves the connections of `listener`.
    /// `name` is used in logs and metrics.
    pub fn new<D: ConnectionHandler>(
        name: &'static str,
        listener: Listener,
        limits: ConnectionLimits,
        handler: D,
    ) -> Self {
        Self {
            name,
            slots: ConnectionSlots::new(name, limits.at_once),
            listen: Box::new(move |shutdown, slots| {
                Box::pin(listen(listener, limits, handler, shutdown, slots))
            }),
        }
    }

    /// Returns the connection slots of the listener. Their counts can be read while the listener
    /// serves.
    #[must_use]
    pub fn slots(&self) -> ConnectionSlots {
        self.slots.clone()
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Serves all `listeners` until `shutdown` resolves, and then drains them. While a listener drains,
/// it accepts no more clients, answers every request that has arrived, and then closes the
/// connection of the request.
///
/// If the future that this function returns is dropped, all connections are closed at once.
///
/// # Errors
/// [`DrainTimeout`] if clients were still being served after `drain`. Their connections are closed,
/// and this function returns when all of them have ended, at most one second later.
pub async fn serve(
    listeners: Vec<Served>,
    drain: Duration,
    shutdown: impl Future<Output = ()>,
) -> Result<(), DrainTimeout> {
    let (phase, watched) = Shutdown::new();
    let mut all_slots = Vec::new();
    let mut listening = tokio::task::JoinSet::new();
    for served in listeners {
        all_slots.push(served.slots());
        listening.spawn((served.listen)(watched.clone(), served.slots));
    }
    pin!(shutdown).await;
    let ended = end(&phase, listening, &all_slots, drain).await;
    phase.send_replace(Phase::Cut);
    if ended.is_err() {
        let _ = timeout(CUT_TIMEOUT, all_free(&all_slots)).await;
    }
    ended
}

/// Waits until all sockets have stopped accepting, and then until every slot of every listener is
/// free.
///
/// # Errors
/// [`DrainTimeout`] if slots are still in use after the time `drain`.
async fn end(
    phase: &watch::Sender<Phase>,
    mut listening: tokio::task::JoinSet<()>,
    all_slots: &[ConnectionSlots],
    drain: Duration,
) -> Result<(), DrainTimeout> {
    phase.send_replace(Phase::Draining);
    let drained = async {
        // All slots may be free for a short time between two clients of the backlog, so the accept
        // loops have to end first.
        while listening.join_next().await.is_some() {}
        all_free(all_slots).await;
    };
    if timeout(drain, drained).await.is_ok() {
        return Ok(());
    }
    let left = all_slots
        .iter()
        .map(|slots| (slots.listener, slots.taken()))
        .filter(|(_, left)| *left > 0)
        .collect();
    Err(DrainTimeout { left, waited: drain })
}

/// Waits until every slot of every listener is free.
async fn all_free(all_slots: &[ConnectionSlots]) {
    for slots in all_slots {
        slots.all_free().await;
    }
}

/// Serves `listener`: passes each client that gets a slot to `handler`.
async fn listen<D: ConnectionHandler>(
    listener: Listener,
    limits: ConnectionLimits,
    handler: D,
    shutdown: Shutdown,
    slots: ConnectionSlots,
) {
    let mut ended = shutdown.clone();
    let begin = |accepted: Accepted, admission: Admission<_, _>| {
        let slot = slots.open(admission);
        tokio::spawn(serve_one(accepted, slot, limits, handler.clone(), shutdown.clone()));
    };
    accept(listener, slots.registry(), ended.reached(Phase::Draining), begin).await;
}

async fn serve_one<D: ConnectionHandler>(
    accepted: Accepted,
    slot: ConnectionSlot,
    limits: ConnectionLimits,
    handler: D,
    shutdown: Shutdown,
) {
    let mut phase = shutdown.clone();
    let cut = PollOnWake::new(phase.reached(Phase::Cut));
    let served = async {
        let peer = accepted.peer;
        if let Ok(Ok(stream)) = timeout(limits.handshake, accepted.handshake()).await {
            handler.serve(Connection { stream, peer, shutdown, slot }).await;
        }
    };
    tokio::select! {
        biased;
        () = served => {}
        () = cut => {}
    }
}

/// The error of a shutdown in which clients were still being served at the end of the drain time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainTimeout {
    /// The number of connections that were still open, for each listener.
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
