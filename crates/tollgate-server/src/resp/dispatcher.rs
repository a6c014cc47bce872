//! The dispatcher, which executes the commands of a connection and writes the replies. It does not
//! use the socket.

mod reserve;
mod transactions;

use std::future::Future;
use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::model::policy::{OnFailure, PlannedCharge};
use tollgate::model::{Store, Timestamp};
use tollgate::observe::Histogram;
use tollgate::{DecisionRequest, Limiter, Revision};

use super::args::Args;
use super::bucket::BucketCache;
use super::command::{self, Command, CommandKind};
use super::frame::{self, ClientAuth};
use super::in_flight::{ChargedKeys, InFlight, charged};
use super::protocol_error::ProtocolError;
use super::reply::Replies;
use super::session::{self, Next, Session};
use super::tg_commands;
use super::throttle::{Bucket, Dialect, Throttle};
use super::transaction::Transaction;
use crate::access::Access;
use transactions::Executing;

/// The size of queued replies, in bytes, from which on the replies are sent before more commands
/// are read.
pub(super) const MAX_REPLIES: usize = 64 * 1024;

/// The state of a connection after its input was processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All complete commands are answered, and more bytes are needed.
    Answered,
    /// Complete commands are left, but the queued replies have to be sent first.
    Sending,
    /// The connection closes after the queued replies are sent.
    End,
}

/// The form in which the reply to a decision is written.
#[derive(Clone, Copy, Debug)]
enum Reply {
    Throttle(Dialect, Bucket),
    Named,
}

/// The command processing of one connection.
///
/// `decide` starts a decision. All decisions have the same type of future, so they can be polled
/// together.
pub(super) struct Dispatcher<'d, S, D, F: Future> {
    limiter: &'d Arc<Limiter<S>>,
    decide: D,
    session: Session<'d>,
    /// The commands that were queued since `MULTI`. `None` outside of a transaction.
    transaction: Option<Transaction>,
    /// The transaction whose commands are being executed. Set between two parts of its replies.
    executing: Option<Box<Executing>>,
    buckets: BucketCache,
    in_flight: InFlight<'d, F, Reply>,
    now: Option<Timestamp>,
    /// The policy for the commands that arrived together. `None` while the connection is idle.
    policy: Option<Arc<Revision>>,
    replies: Replies,
    unquoted: Vec<u8>,
}

impl<'d, S, D, F> Dispatcher<'d, S, D, F>
where
    S: Store + 'static,
    D: Fn(DecisionRequest<'_>) -> F,
    F: Future<Output = Decision>,
{
    pub(super) fn new(
        limiter: &'d Arc<Limiter<S>>,
        access: &'d Access,
        latency: &'d Histogram,
        decide: D,
    ) -> Self {
        Self {
            limiter,
            decide,
            session: Session::new(access),
            transaction: None,
            executing: None,
            buckets: BucketCache::default(),
            in_flight: InFlight::new(latency),
            now: None,
            policy: None,
            replies: Replies::default(),
            unquoted: Vec::new(),
        }
    }

    /// Returns the replies to send.
    pub(super) fn replies(&mut self) -> &mut Replies {
        &mut self.replies
    }

    /// Returns the number of wrong tokens that the client sent since the last call.
    pub(super) fn take_wrong_tokens(&mut self) -> u32 {
        self.session.take_wrong_tokens()
    }

    /// Answers the complete commands at the start of `input` and removes them.
    pub(super) async fn answer(&mut self, input: &mut Vec<u8>) -> Progress {
        self.session.revalidate_token();
        let mut used = 0;
        let mut unquoted = std::mem::take(&mut self.unquoted);
        let progress = loop {
            if self.replies.as_bytes().len() >= MAX_REPLIES {
                break Progress::Sending;
            }
            if self.executing.is_some() {
                if self.session.sender() == ClientAuth::Unauthenticated {
                    // The listener no longer has the token that authenticated the client.
                    self.executing = None;
                    break Progress::End;
                }
                Box::pin(self.execute_queued()).await;
                continue;
            }
            match frame::parse(&input[used..], self.session.sender(), &mut unquoted) {
                Ok(None) => break Progress::Answered,
                Ok(Some((args, length))) => {
                    used += length;
                    if !args.is_empty() && self.command(&args).await == Next::End {
                        break Progress::End;
                    }
                }
                Err(error) => {
                    self.finish().await;
                    self.protest(error);
                    break Progress::End;
                }
            }
        };
        self.finish().await;
        self.read_again();
        self.unquoted = unquoted;
        input.drain(..used);
        progress
    }

    /// Discards the time and the policy of the last commands, so the next decision reads the clocks
    /// and the policy again.
    fn read_again(&mut self) {
        (self.now, self.policy) = (None, None);
        self.in_flight.read_clock_again();
    }

    async fn command(&mut self, args: &Args<'_>) -> Next {
        let found = Command::find(args);
        let is_open = found.as_ref().is_ok_and(|command| command.is_open());
        if self.session.sender() == ClientAuth::Unauthenticated && !is_open {
            return self.refuse();
        }
        match found {
            Err(error) => {
                self.abort_transaction();
                self.reply_error(error).await
            }
            Ok(command) if self.transaction.is_some() => self.queue(command, args).await,
            Ok(command) => self.execute(command, args).await,
        }
    }

    async fn execute(&mut self, command: &Command, args: &Args<'_>) -> Next {
        match command.kind {
            CommandKind::CellThrottle => self.throttle(Dialect::Cell, args).await,
            CommandKind::CrabThrottle => self.throttle(Dialect::Crab, args).await,
            CommandKind::Charge => self.charge(args).await,
            kind => {
                // The decisions in flight are finished first, because replies keep the order of the
                // commands, and some commands change the effect of later commands.
                self.finish().await;
                self.read_again();
                match kind {
                    CommandKind::Peek => self.peek(args).await,
                    CommandKind::LimitStatus => self.limit_status(args).await,
                    CommandKind::Reserve => self.reserve(args).await,
                    CommandKind::Extend => self.extend(args).await,
                    CommandKind::Settle => self.settle(args).await,
                    CommandKind::Refund | CommandKind::Release => self.undo(kind, args).await,
                    _ => return self.session_command(kind, args),
                }
                Next::Command
            }
        }
    }

    /// Executes a command about the connection, which charges no limit.
    fn session_command(&mut self, kind: CommandKind, args: &Args<'_>) -> Next {
        let (session, replies, args) = (&mut self.session, &mut self.replies, &args[1..]);
        match kind {
            CommandKind::Auth => return session.auth(args, replies),
            CommandKind::Hello => return session.hello(args, replies),
            CommandKind::Client => session.client(args, replies),
            CommandKind::Command => command::describe(args, replies),
            CommandKind::Echo => replies.bulk(args[0]),
            CommandKind::Info => session::info(replies),
            CommandKind::Ping => session::ping(args, replies),
            CommandKind::Reset => session.reset(replies),
            CommandKind::Select => session::select(args[0], replies),
            CommandKind::Multi => {
                self.transaction = Some(Transaction::default());
                replies.status("OK");
            }
            CommandKind::Exec => replies.error("ERR EXEC without MULTI"),
            CommandKind::Discard => replies.error("ERR DISCARD without MULTI"),
            _ => {
                replies.status("OK");
                return Next::End;
            }
        }
        Next::Command
    }

    async fn throttle(&mut self, dialect: Dialect, args: &Args<'_>) -> Next {
        match dialect.read(args, &mut self.buckets, self.limiter.key()) {
            Err(error) => return self.reply_error(error).await,
            Ok(Throttle::Nothing { capacity, cost }) => {
                self.finish().await;
                dialect.reply_nothing(capacity, cost, &mut self.replies);
            }
            Ok(Throttle::Charge(planned)) => {
                let bucket = Bucket { capacity: planned.limit.capacity(), cost: planned.cost };
                let reply = Reply::Throttle(dialect, bucket);
                let policy = self.take_policy();
                let on_failure = policy.answers().on_failure;
                self.begin(policy, vec![planned], on_failure, reply).await;
            }
        }
        Next::Command
    }

    async fn charge(&mut self, args: &Args<'_>) -> Next {
        let policy = self.take_policy();
        match tg_commands::charge(&policy, &args[1..], self.limiter.key()) {
            Err(error) => return self.reply_error(error).await,
            Ok(plan) => self.begin(policy, plan.planned, plan.on_failure, Reply::Named).await,
        }
        Next::Command
    }

    /// Returns the policy for the next decision, and removes it from the dispatcher.
    /// [`begin`](Self::begin) puts the policy back.
    fn take_policy(&mut self) -> Arc<Revision> {
        self.policy.take().unwrap_or_else(|| self.limiter.policy())
    }

    /// Decides on a command. If no decision is in flight and the store answers at once, this
    /// function writes the reply without a future. Otherwise it starts the decision. A decision
    /// that charges none of the keys of the decisions in flight runs concurrently with them. Any
    /// other decision starts after they have ended.
    async fn begin(
        &mut self,
        policy: Arc<Revision>,
        planned: Vec<PlannedCharge>,
        on_failure: OnFailure,
        reply: Reply,
    ) {
        // All commands that arrived together, and that do not wait, have the same timestamp.
        let now = *self.now.get_or_insert_with(|| self.limiter.now());
        let mut request = DecisionRequest::of_charges(now, &policy, planned, on_failure);
        if self.in_flight.is_empty()
            && let Some(decision) =
                self.in_flight.measure(|| self.limiter.decide_at_once(&mut request))
        {
            reply.write(decision, self.limiter, &mut self.replies);
            self.policy = Some(policy);
            return;
        }
        let charged: ChargedKeys = charged(&request.plan.enforced);
        if !self.in_flight.has_room(&charged) {
            self.finish().await;
            request.now = *self.now.get_or_insert_with(|| self.limiter.now());
        }
        let decision = (self.decide)(request);
        self.policy = Some(policy);
        self.in_flight.begin(decision, charged, reply);
        let (limiter, replies) = (self.limiter, &mut self.replies);
        self.in_flight.at_once(|decision, reply| reply.write(decision, limiter, replies)).await;
    }

    /// Waits for all decisions in flight and writes their replies.
    async fn finish(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let (limiter, replies) = (self.limiter, &mut self.replies);
        self.in_flight.finish(|decision, reply| reply.write(decision, limiter, replies)).await;
        self.read_again();
    }

    async fn peek(&mut self, args: &Args<'_>) {
        let plan = match tg_commands::charge(&self.limiter.policy(), &args[1..], self.limiter.key())
        {
            Err(error) => return self.replies.error(error),
            Ok(plan) => plan,
        };
        match self.limiter.peek_at(self.limiter.now(), plan.planned).await {
            Err(error) => tg_commands::reply_failure(error, &mut self.replies),
            Ok(peek) => tg_commands::reply_peek(&peek.evaluation, peek.source, &mut self.replies),
        }
    }

    async fn limit_status(&mut self, args: &Args<'_>) {
        match tg_commands::limit_status(&self.limiter.policy(), &args[1..], self.limiter.key()) {
            Err(error) => self.replies.error(error),
            Ok(plan) => match self.limiter.peek_planned(self.limiter.now(), &plan.planned).await {
                Err(error) => tg_commands::reply_failure(error, &mut self.replies),
                Ok((evaluation, _)) => tg_commands::reply_statuses(&evaluation, &mut self.replies),
            },
        }
    }

    async fn undo(&mut self, kind: CommandKind, args: &Args<'_>) {
        let (now, text) = (self.limiter.now(), String::from_utf8_lossy(args[1]));
        let redeemed = match kind {
            CommandKind::Release => self.limiter.release_at(now, &text).await,
            _ => self.limiter.redeem_at(now, &text).await,
        };
        tg_commands::reply_refund(&redeemed, &mut self.replies);
    }

    async fn reply_error(&mut self, error: String) -> Next {
        self.finish().await;
        self.replies.error(error);
        Next::Command
    }

    /// Refuses a command of a client that is not authenticated. Such a client has no decisions in
    /// flight.
    fn refuse(&mut self) -> Next {
        self.abort_transaction();
        Session::refuse(&mut self.replies);
        Next::Command
    }

    fn protest(&mut self, error: ProtocolError) {
        // HTTP gets no reply, because a browser could show the reply to the page that made the
        // browser send commands to this listener.
        if error != ProtocolError::Http {
            self.replies.error(format!("ERR Protocol error: {error}"));
        }
    }
}

impl Reply {
    fn write<S: Store>(self, mut decision: Decision, limiter: &Limiter<S>, replies: &mut Replies) {
        match self {
            Self::Throttle(dialect, bucket) => dialect.reply(&decision, bucket, replies),
            Self::Named => {
                let receipt = decision.receipt.take();
                let sealed = receipt.map(|receipt| limiter.seal(receipt, decision.evaluation.now));
                tg_commands::reply(&decision, sealed, replies);
            }
        }
    }
}
