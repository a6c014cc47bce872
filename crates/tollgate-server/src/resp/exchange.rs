//! Commands become replies: the part of a connection that has no socket.

mod reserve;

use std::future::Future;
use std::sync::Arc;

use tollgate::core::policy::{OnFailure, Planned};
use tollgate::core::{Store, Timestamp};
use tollgate::{Decision, Limiter, Revision};

use super::bucket::Buckets;
use super::command::{self, Command, Verb};
use super::frame::{self, Sender};
use super::in_flight::{Charged, InFlight, charged};
use super::named;
use super::protocol_error::ProtocolError;
use super::reply::Replies;
use super::session::{self, Next, Session};
use super::throttle::{Bucket, Dialect, Throttle};
use super::words::Words;
use crate::Access;
use tollgate::observe::Histogram;

/// Bytes of replies that wait, before they are sent and no more commands are looked at.
pub(super) const MAX_REPLIES: usize = 64 * 1024;

/// What goes on after the bytes that were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All whole commands are answered: more bytes are needed.
    Answered,
    /// Commands wait, and so many replies do that they are to be sent first.
    Sending,
    /// The connection ends once the replies are sent.
    End,
}

/// How a decision is replied to.
#[derive(Clone, Copy, Debug)]
enum Reply {
    Throttle(Dialect, Bucket),
    Named,
}

/// What a client says and is told.
///
/// `decide` begins a decision: one type for all of them, so that they can wait together.
pub(super) struct Exchange<'d, S, D, F: Future> {
    limiter: &'d Limiter<S>,
    decide: D,
    session: Session<'d>,
    buckets: Buckets,
    in_flight: InFlight<'d, F, Reply>,
    now: Option<Timestamp>,
    replies: Replies,
    unquoted: Vec<u8>,
}

impl<'d, S, D, F> Exchange<'d, S, D, F>
where
    S: Store,
    D: Fn(Timestamp, &Arc<Revision>, Vec<Planned>, OnFailure) -> F,
    F: Future<Output = Decision>,
{
    pub(super) fn new(
        limiter: &'d Limiter<S>,
        access: &'d Access,
        latency: &'d Histogram,
        decide: D,
    ) -> Self {
        Self {
            limiter,
            decide,
            session: Session::new(access),
            buckets: Buckets::default(),
            in_flight: InFlight::new(latency),
            now: None,
            replies: Replies::default(),
            unquoted: Vec::new(),
        }
    }

    /// What is to be sent.
    pub(super) fn replies(&mut self) -> &mut Replies {
        &mut self.replies
    }

    /// Answers the whole commands at the start of `input` and takes them away.
    pub(super) async fn answer(&mut self, input: &mut Vec<u8>) -> Progress {
        self.now = None;
        self.session.look_again();
        let mut used = 0;
        let mut unquoted = std::mem::take(&mut self.unquoted);
        let progress = loop {
            if self.replies.as_bytes().len() >= MAX_REPLIES {
                break Progress::Sending;
            }
            match frame::parse(&input[used..], self.session.sender(), &mut unquoted) {
                Ok(None) => break Progress::Answered,
                Ok(Some((words, length))) => {
                    used += length;
                    if !words.is_empty() && self.command(&words).await == Next::End {
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
        self.unquoted = unquoted;
        input.drain(..used);
        progress
    }

    async fn command(&mut self, words: &Words<'_>) -> Next {
        let command = match Command::find(words) {
            Ok(command) => command,
            Err(_) if self.session.sender() == Sender::Stranger => return self.refuse(),
            Err(error) => return self.reply_error(error).await,
        };
        if self.session.sender() == Sender::Stranger && !command.is_open() {
            return self.refuse();
        }
        match command.verb {
            Verb::CellThrottle => self.throttle(Dialect::Cell, words).await,
            Verb::CrabThrottle => self.throttle(Dialect::Crab, words).await,
            Verb::Charge => self.charge(words).await,
            verb => {
                // Replies are in the order of commands, and some change what follows.
                self.finish().await;
                match verb {
                    Verb::Peek => self.peek(words).await,
                    Verb::Standing => self.standing(words).await,
                    Verb::Reserve => self.reserve(words).await,
                    Verb::Extend => self.extend(words).await,
                    Verb::Settle => self.settle(words).await,
                    Verb::Refund | Verb::Release => self.give_back(verb, words).await,
                    _ => return self.converse(verb, words),
                }
                Next::Command
            }
        }
    }

    /// What concerns the connection, and no limit.
    fn converse(&mut self, verb: Verb, words: &Words<'_>) -> Next {
        let (session, replies, words) = (&mut self.session, &mut self.replies, &words[1..]);
        match verb {
            Verb::Auth => return session.auth(words, replies),
            Verb::Hello => return session.hello(words, replies),
            Verb::Client => session.client(words, replies),
            Verb::Command => command::describe(words, replies),
            Verb::Echo => replies.bulk(words[0]),
            Verb::Info => session::info(replies),
            Verb::Ping => session::ping(words, replies),
            Verb::Reset => session.reset(replies),
            Verb::Select => session::select(words[0], replies),
            _ => {
                replies.status("OK");
                return Next::End;
            }
        }
        Next::Command
    }

    async fn throttle(&mut self, dialect: Dialect, words: &Words<'_>) -> Next {
        match dialect.read(words, &mut self.buckets, self.limiter.key()) {
            Err(error) => return self.reply_error(error).await,
            Ok(Throttle::Nothing { capacity, cost }) => {
                self.finish().await;
                dialect.reply_nothing(capacity, cost, &mut self.replies);
            }
            Ok(Throttle::Charge(planned)) => {
                let bucket = Bucket { capacity: planned.limit.capacity(), cost: planned.cost };
                let reply = Reply::Throttle(dialect, bucket);
                let policy = self.limiter.policy();
                let on_failure = policy.answers().on_failure;
                self.begin(&policy, vec![planned], on_failure, reply).await;
            }
        }
        Next::Command
    }

    async fn charge(&mut self, words: &Words<'_>) -> Next {
        let policy = self.limiter.policy();
        match named::charge(&policy, &words[1..], self.limiter.key()) {
            Err(error) => return self.reply_error(error).await,
            Ok(plan) => self.begin(&policy, plan.planned, plan.on_failure, Reply::Named).await,
        }
        Next::Command
    }

    /// Begins a decision, beside those that are under way if it may stand beside them.
    async fn begin(
        &mut self,
        policy: &Arc<Revision>,
        planned: Vec<Planned>,
        on_failure: OnFailure,
        reply: Reply,
    ) {
        let charged: Charged = charged(&planned);
        if !self.in_flight.has_room(&charged) {
            self.finish().await;
        }
        // One for all that came together and waits for nothing.
        let now = *self.now.get_or_insert_with(|| self.limiter.now());
        let decision = (self.decide)(now, policy, planned, on_failure);
        self.in_flight.begin(decision, charged, reply);
        let (limiter, replies) = (self.limiter, &mut self.replies);
        self.in_flight.at_once(|decision, reply| reply.write(decision, limiter, replies)).await;
    }

    /// Replies to everything that is under way.
    async fn finish(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        self.now = None;
        let (limiter, replies) = (self.limiter, &mut self.replies);
        self.in_flight.finish(|decision, reply| reply.write(decision, limiter, replies)).await;
    }

    async fn peek(&mut self, words: &Words<'_>) {
        let plan = match named::charge(&self.limiter.policy(), &words[1..], self.limiter.key()) {
            Err(error) => return self.replies.error(error),
            Ok(plan) => plan,
        };
        let now = self.limiter.now();
        let enforced = self.limiter.shares(now, plan.planned).enforced;
        match self.limiter.look_at(now, &enforced).await {
            Err(error) => named::reply_failure(error, &mut self.replies),
            Ok((verdict, source)) => named::reply_look(&verdict, source, &mut self.replies),
        }
    }

    async fn standing(&mut self, words: &Words<'_>) {
        match named::standing(&self.limiter.policy(), &words[1..], self.limiter.key()) {
            Err(error) => self.replies.error(error),
            Ok(plan) => match self.limiter.look_at(self.limiter.now(), &plan.planned).await {
                Err(error) => named::reply_failure(error, &mut self.replies),
                Ok((verdict, _)) => named::reply_standings(&verdict, &mut self.replies),
            },
        }
    }

    async fn give_back(&mut self, verb: Verb, words: &Words<'_>) {
        let (now, text) = (self.limiter.now(), String::from_utf8_lossy(words[1]));
        let redeemed = match verb {
            Verb::Release => self.limiter.release_at(now, &text).await,
            _ => self.limiter.redeem_at(now, &text).await,
        };
        named::reply_refund(&redeemed, &mut self.replies);
    }

    async fn reply_error(&mut self, error: String) -> Next {
        self.finish().await;
        self.replies.error(error);
        Next::Command
    }

    /// Nothing is under way for a stranger.
    fn refuse(&mut self) -> Next {
        Session::refuse(&mut self.replies);
        Next::Command
    }

    fn protest(&mut self, error: ProtocolError) {
        // A page that has a browser send commands here would read what it is told.
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
                let sealed = receipt.map(|receipt| limiter.seal(receipt, decision.verdict.now));
                named::reply(&decision, sealed, replies);
            }
        }
    }
}
