//! The Redis protocol (RESP), for which every language already has a client.
//!
//! A connection has three layers: `wire` handles bytes and time limits, `frame` parses bytes to
//! commands, and `dispatcher` executes commands and writes replies. The commands of one read are
//! decided concurrently if the order of charges allows it. Their replies are sent in one write, in
//! the order of the commands.
//!
//! | quantity | most |
//! | --- | --- |
//! | arguments of a command | [`MAX_ARGS`] |
//! | bytes of an argument, and before authentication | [`MAX_BULK`], [`MAX_UNAUTHENTICATED_BULK`] |
//! | bytes of a command, and of an inline command | [`MAX_COMMAND`], [`MAX_INLINE`] |
//! | concurrent decisions of a connection | [`MAX_IN_FLIGHT`] |
//! | bytes of incomplete commands and transactions of all connections | [`MAX_COMMAND_MEMORY`] |
//! | limits that one command names | [`MAX_LIMITS`] |
//! | commands and bytes of a transaction | [`MAX_QUEUED`], [`MAX_QUEUED_BYTES`] |
//! | wrong tokens that a connection may send | [`MAX_WRONG_TOKENS`] |
//! | time to finish a command, to take replies, and between commands | [`ConnectionLimits`] |

mod args;
mod bucket;
mod command;
mod dispatcher;
mod frame;
mod in_flight;
mod inline;
mod memory;
mod protocol_error;
mod reply;
mod session;
mod tg_commands;
mod throttle;
mod transaction;
mod wire;

use std::fmt;
use std::sync::Arc;

use tollgate::model::Store;
use tollgate::{DecisionRequest, Limiter};

pub use args::MAX_ARGS;
pub use frame::{MAX_BULK, MAX_COMMAND, MAX_INLINE, MAX_UNAUTHENTICATED_BULK};
pub use in_flight::MAX_IN_FLIGHT;
pub use memory::MAX_COMMAND_MEMORY;
pub use session::MAX_WRONG_TOKENS;
pub use tg_commands::MAX_LIMITS;
pub use transaction::{MAX_QUEUED, MAX_QUEUED_BYTES};

use dispatcher::{Dispatcher, Progress};
use memory::{CommandBytes, CommandMemory, NO_MEMORY};
use wire::{PartialCommand, Received, Wire, shrink_buffer};

use crate::access::Access;
use crate::connection::{Connection, ConnectionHandler, ConnectionLimits};
use crate::listener_counters::CloseReason;
use tollgate::observe::Histogram;

/// The settings of a [`RespListener`].
#[derive(Clone, Debug, Default)]
pub struct RespSettings {
    /// The access control. A client sends its token as the password of any user.
    pub access: Access,
    /// The limits of connections.
    pub limits: ConnectionLimits,
}

/// The listener for the Redis protocol, version 2 or 3.
///
/// While the store does not answer, `on_failure` decides. No rule of the policy applies to
/// `CL.THROTTLE` and `THROTTLE`, so `answers.on_failure` of the policy applies to them. For limits
/// of the policy that are charged by name, `on_failure` of the rules that use these limits applies.
pub struct RespListener<S> {
    limiter: Arc<Limiter<S>>,
    settings: Arc<RespSettings>,
    memory: Arc<CommandMemory>,
    latency: Arc<Histogram>,
}

impl<S> RespListener<S> {
    /// Creates a listener for decisions of `limiter`.
    #[must_use]
    pub fn new(limiter: Arc<Limiter<S>>, settings: RespSettings) -> Self {
        Self {
            limiter,
            settings: Arc::new(settings),
            memory: Arc::default(),
            latency: Arc::default(),
        }
    }

    /// Returns the durations of the decisions that came through this listener and its clones.
    #[must_use]
    pub fn latency(&self) -> Arc<Histogram> {
        Arc::clone(&self.latency)
    }
}

impl<S: Store + 'static> ConnectionHandler for RespListener<S> {
    async fn serve(self, connection: Connection) {
        let RespSettings { access, limits } = &*self.settings;
        let mut wire = Wire::new(connection, *limits);
        let decide = |request: DecisionRequest<'_>| {
            let decision = self.limiter.decide_or_release(request);
            self.limiter.tracer().begin("RESP").run(decision)
        };
        let mut dispatcher = Dispatcher::new(&self.limiter, access, &self.latency, decide);
        let mut input = Vec::new();
        let mut begun = PartialCommand::Nothing;
        let mut bytes = CommandBytes::new(Arc::clone(&self.memory));
        loop {
            if bytes.make_room(&mut input, dispatcher.queued_bytes()).is_err() {
                wire.count_closed(CloseReason::CommandMemory);
                dispatcher.replies().error(NO_MEMORY);
                // An error is ignored, because the connection closes in any case.
                let _ = wire.send(dispatcher.replies().as_bytes()).await;
                break;
            }
            if wire.receive(&mut input, begun).await == Received::End {
                break;
            }
            let before = input.len();
            let mut progress = Progress::Sending;
            while progress == Progress::Sending {
                progress = dispatcher.answer(&mut input).await;
                wire.count_wrong_tokens(dispatcher.take_wrong_tokens());
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
            memory: Arc::clone(&self.memory),
            latency: Arc::clone(&self.latency),
        }
    }
}

impl<S> fmt::Debug for RespListener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RespListener").field("settings", &self.settings).finish_non_exhaustive()
    }
}
