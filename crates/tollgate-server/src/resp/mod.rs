//! The Redis protocol: every language has a client for it already.
//!
//! A connection is three things: `wire` has bytes and time, `frame` makes words of bytes, and
//! `exchange` makes replies of words. Commands of one read are decided on together where the
//! order of charges allows it, and answered in one write, in their order.
//!
//! | bound | |
//! | --- | --- |
//! | words of a command | [`MAX_ARGS`] |
//! | bytes of a word, and before a token was shown | [`MAX_BULK`], [`MAX_UNAUTHENTICATED_BULK`] |
//! | bytes of a command, and of one that is a line | [`MAX_COMMAND`], [`MAX_INLINE`] |
//! | decisions of a connection at the same time | [`MAX_IN_FLIGHT`] |
//! | limits that one command names | [`MAX_LIMITS`] |
//! | commands and bytes of a transaction | [`MAX_QUEUED`], [`MAX_QUEUED_BYTES`] |
//! | wrong tokens that a connection may show | [`MAX_WRONG_TOKENS`] |
//! | time to finish a command, to take replies, and between commands | [`ConnectionLimits`] |

mod args;
mod bucket;
mod command;
mod dispatcher;
mod frame;
mod in_flight;
mod inline;
mod protocol_error;
mod reply;
mod session;
mod tg_commands;
mod throttle;
mod transaction;
mod wire;

use std::fmt;
use std::sync::Arc;

use tollgate::core::Store;
use tollgate::core::policy::PlannedCharge;
use tollgate::{DecisionRequest, Limiter, Revision};

pub use args::MAX_ARGS;
pub use frame::{MAX_BULK, MAX_COMMAND, MAX_INLINE, MAX_UNAUTHENTICATED_BULK};
pub use in_flight::MAX_IN_FLIGHT;
pub use session::MAX_WRONG_TOKENS;
pub use tg_commands::MAX_LIMITS;
pub use transaction::{MAX_QUEUED, MAX_QUEUED_BYTES};

use dispatcher::{Dispatcher, Progress};
use wire::{PartialCommand, Received, Wire, shrink_buffer};

use crate::{Access, Connection, ConnectionLimits, Door};
use tollgate::observe::Histogram;

/// How a [`RespListener`] serves.
#[derive(Clone, Debug, Default)]
pub struct RespSettings {
    /// Who may ask. A token is shown as the password of any user.
    pub access: Access,
    /// How long clients may take.
    pub limits: ConnectionLimits,
}

/// The listener of clients that speak the Redis protocol, in its second or third version.
///
/// No rule of the policy speaks of `CL.THROTTLE` and `THROTTLE`: while the store has no answer, the
/// policy's `answers` decide on them. Limits of the policy that are charged by name keep the word of
/// the rules that use them.
pub struct RespListener<S> {
    limiter: Arc<Limiter<S>>,
    settings: Arc<RespSettings>,
    latency: Arc<Histogram>,
}

impl<S> RespListener<S> {
    /// A listener to `limiter`.
    #[must_use]
    pub fn new(limiter: Arc<Limiter<S>>, settings: RespSettings) -> Self {
        Self { limiter, settings: Arc::new(settings), latency: Arc::default() }
    }

    /// How long decisions took that came in through this listener, and those of its clones.
    #[must_use]
    pub fn latency(&self) -> Arc<Histogram> {
        Arc::clone(&self.latency)
    }
}

impl<S: Store + 'static> Door for RespListener<S> {
    async fn serve(self, connection: Connection) {
        let RespSettings { access, limits } = &*self.settings;
        let mut wire = Wire::new(connection, *limits);
        let decide = |now, policy: &Arc<Revision>, enforced: Vec<PlannedCharge>, on_failure| {
            let request = DecisionRequest::of_charges(now, policy, enforced, on_failure);
            let decision = self.limiter.decide(request);
            self.limiter.tracer().begin("RESP").run(decision)
        };
        let mut dispatcher = Dispatcher::new(&self.limiter, access, &self.latency, decide);
        let mut input = Vec::new();
        let mut begun = PartialCommand::Nothing;
        while wire.receive(&mut input, begun).await == Received::Bytes {
            let before = input.len();
            let mut progress = Progress::Sending;
            while progress == Progress::Sending {
                progress = dispatcher.answer(&mut input).await;
                let replies = dispatcher.replies();
                if !replies.as_bytes().is_empty() && wire.send(replies.as_bytes()).await.is_err() {
                    return;
                }
                replies.clear(dispatcher::MAX_REPLIES);
            }
            if progress == Progress::End {
                break;
            }
            begun = match input.len() {
                0 => PartialCommand::Nothing,
                left if left == before && begun != PartialCommand::Nothing => {
                    PartialCommand::Before
                }
                _ => PartialCommand::Now,
            };
            shrink_buffer(&mut input);
        }
        wire.close().await;
    }
}

impl<S> Clone for RespListener<S> {
    fn clone(&self) -> Self {
        Self {
            limiter: Arc::clone(&self.limiter),
            settings: Arc::clone(&self.settings),
            latency: Arc::clone(&self.latency),
        }
    }
}

impl<S> fmt::Debug for RespListener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RespListener").field("settings", &self.settings).finish_non_exhaustive()
    }
}
