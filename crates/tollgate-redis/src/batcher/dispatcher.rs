//! The dispatcher, which sends a batcher's calls to the server and reacts to the replies.

#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use tollgate_link::Fault;

use super::BatcherError;
use super::call::Call;
use super::counters::Counters;
use super::pacing::Pacing;
use super::queue::Jobs;
use super::route::Priority;
use crate::codec::{Codec, ErrorAction};
use crate::connection::Connection;
use crate::error::StepError;
use crate::link::{ClaimedConnection, ConnectionPool, Link, Phase};
use crate::offset::Reading;
use crate::redirect::Redirect;

/// Sends the batches of a batcher and delivers the answers to their callers. The caller or the
/// driver that sends a batch needs a [`Slot`](super::pacing::Slot) first.
pub(super) struct Dispatcher<C: Codec> {
    codec: Arc<C>,
    link: Arc<Link>,
    counters: Arc<Counters>,
    disconnect_grace: Duration,
    /// The generation of the newest connection that was found to be unusable. Connections with this
    /// or a lower generation are not used.
    left: AtomicU64,
    pacing: Arc<Pacing>,
    /// The last time at which the step was loaded because the server had lost the step. `None` if
    /// the server never lost it.
    loaded: Mutex<Option<Instant>>,
}

/// The result of sending a call and waiting for its replies.
enum Outcome {
    /// The server replied to each command, possibly with errors.
    Replies(Vec<RedisResult<Value>>),
    /// The connection failed.
    Failed(RedisError),
    /// The caller no longer waits for the answer.
    Abandoned,
    /// The link has dropped the connection.
    Disconnected,
}

/// The consequences of an error reply: whether the call may have been executed, and whether the
/// server can still be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorClass {
    /// The server executed nothing and cannot serve now. Another server may be able to serve, or
    /// this server may be able to serve soon.
    Unfit,
    /// The connection is closed. It is unknown which jobs were executed.
    Ended,
    /// The server rejects the call, and would reject the same call again. It is unknown which jobs
    /// the server executed.
    Refused,
}

impl<C: Codec> Dispatcher<C> {
    /// Creates a dispatcher for `link`. While a connection is being replaced, calls on the old
    /// connection wait for their replies for up to
    /// [`disconnect_grace`](super::BatcherLimits::disconnect_grace).
    pub(super) fn new(
        codec: Arc<C>,
        link: Arc<Link>,
        counters: Arc<Counters>,
        pacing: Arc<Pacing>,
        disconnect_grace: Duration,
    ) -> Self {
        let (left, loaded) = (AtomicU64::new(0), Mutex::default());
        Self { codec, link, counters, disconnect_grace, left, pacing, loaded }
    }

    /// Sends `batch` to the server, and delivers the answers.
    ///
    /// If this future is dropped, the answers are dropped too. Jobs that have not been sent by then
    /// are not executed.
    pub(super) async fn dispatch(&self, mut batch: Jobs<C>) {
        // Jobs that must be sent again have the least time left. So they are sent first, without
        // newer jobs.
        while !batch.is_empty() {
            batch = self.send(batch).await;
        }
    }

    /// Sends `batch` once. Returns the jobs that must be sent again.
    async fn send(&self, mut batch: Jobs<C>) -> Jobs<C> {
        let mut phases = self.link.phases();
        let Some(connection) = self.connection(&mut phases, batch.last_deadline()).await else {
            batch.complete_all(&BatcherError::Unavailable);
            return Jobs::<C>::new();
        };
        let now = Instant::now();
        batch.drop_expired(now);
        if let Some(shard) = self.link.clock().at(now) {
            self.codec.retime(batch.jobs_mut(), shard);
        }
        batch.note_sending();
        let (Some(first), Some(last)) = (batch.first_deadline(), batch.last_deadline()) else {
            return batch;
        };
        let parts = self.unpaused(batch.into_parts());
        if parts.is_empty() {
            return Jobs::<C>::new();
        }
        self.counters.call(parts.iter().map(Jobs::<C>::len).sum());
        let deadline = self.link.clock().deadline(first);
        let command = |part: &Jobs<C>| (part.route(), self.codec.encode(part.jobs(), deadline));
        let call = Call::of(parts.iter().map(command));
        let mut again = Jobs::<C>::new();
        let mut claimed = connection.claim(self.pacing.overdue_after());
        match self.call(&mut phases, &mut claimed, &call, last).await {
            Outcome::Replies(replies) => {
                let epochs = self.link.epochs();
                let is_down = |reply: &RedisResult<_>| reply.as_ref().is_err_and(is_cluster_down);
                // Without a refusal, the answers are not examined.
                let is_examined = epochs.is_refusing() || replies.iter().any(is_down);
                // Whether the last reply that shows it is a refusal or a write.
                let (mut has_refused, mut has_written) = (false, false);
                for (part, reply) in parts.into_iter().zip(replies) {
                    if is_examined && is_down(&reply) {
                        (has_refused, has_written) = (true, false);
                    }
                    again.append(match reply {
                        Ok(reply) => {
                            let answers = self.codec.decode(part.jobs(), reply);
                            if is_examined && self.codec.wrote(part.jobs(), &answers) {
                                (has_refused, has_written) = (false, true);
                            }
                            self.answer(part, answers)
                        }
                        Err(error) => self.fail(&connection, &claimed, part, &error, last).await,
                    });
                }
                if (has_written || has_refused) && self.link.uses(&connection) {
                    if has_written {
                        epochs.accept(claimed.since(), Instant::now());
                    } else {
                        epochs.refuse(Instant::now());
                    }
                }
            }
            Outcome::Failed(error) => {
                for part in parts {
                    again.append(self.fail(&connection, &claimed, part, &error, last).await);
                }
            }
            Outcome::Abandoned => {}
            Outcome::Disconnected => {
                for part in parts {
                    part.complete_all(&BatcherError::Lost);
                }
            }
        }
        again
    }

    /// Returns the batches that may be sent now. While charges are held back until a failover
    /// replay has finished, only batches with [`Priority::Replay`] may be sent. The jobs of the
    /// other batches then get an error.
    fn unpaused(&self, parts: Vec<Jobs<C>>) -> Vec<Jobs<C>> {
        if !self.link.epochs().holds() {
            return parts;
        }
        let (ahead, held): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.priority() == Priority::Replay);
        for part in held {
            part.complete_all(&BatcherError::Unavailable);
        }
        ahead
    }

    /// Returns the connection to use. If a connection is being opened, waits for the connection,
    /// until `last` at most. `last` is the latest deadline of the jobs to send, or `None` if there
    /// are no jobs. Returns `None` if the server is down, if no usable connection is open by
    /// `last`, or if `last` is `None`.
    async fn connection(
        &self,
        phases: &mut watch::Receiver<Phase>,
        last: Option<Instant>,
    ) -> Option<Arc<ConnectionPool>> {
        let left = self.left.load(Ordering::Relaxed);
        // The link still offers a connection that was dropped or closed until the link's supervisor
        // has reacted. Such a connection is not used. The jobs stay unsent and have not been
        // executed.
        let ready = phases.wait_for(|phase| match phase {
            Phase::Up(connection) => {
                connection.generation > left
                    && !connection.has_ended()
                    && self.link.permits(connection)
            }
            Phase::Connecting => false,
            Phase::Down => true,
        });
        match timeout_at(last?, ready).await {
            Ok(Ok(phase)) => match &*phase {
                Phase::Up(connection) => Some(Arc::clone(connection)),
                Phase::Connecting | Phase::Down => None,
            },
            _ => None,
        }
    }

    /// Sends `call` and waits for the replies, until `last` at most.
    async fn call(
        &self,
        phases: &mut watch::Receiver<Phase>,
        claimed: &mut ClaimedConnection,
        call: &Call,
        last: Instant,
    ) -> Outcome {
        let generation = claimed.connection().generation;
        let left = async {
            // An error of this wait means that the link was dropped, together with the connection.
            let _ = phases
                .wait_for(
                    |phase| !matches!(phase, Phase::Up(current) if current.generation == generation),
                )
                .await;
        };
        let sent = Instant::now();
        let replies = {
            let mut replies = pin!(call.send(claimed.connection()));
            tokio::select! {
                // A reply that has arrived counts, even if this task is polled late.
                biased;
                replies = &mut replies => Some(replies),
                // A server that was demoted still reports which calls it did not execute.
                () = left => match timeout_at(last.min(Instant::now() + self.disconnect_grace), replies).await {
                    Ok(replies) => Some(replies),
                    Err(_) => return Outcome::Disconnected,
                },
                () = sleep_until(last) => None,
            }
        };
        if replies.is_some() {
            claimed.answered();
        }
        let outcome = match replies {
            Some(Ok(replies)) => Outcome::Replies(replies),
            Some(Err(error)) => Outcome::Failed(error),
            None => Outcome::Abandoned,
        };
        if let Outcome::Replies(replies) = &outcome
            && let Some(reply) = replies.iter().find_map(|reply| reply.as_ref().ok())
        {
            self.link.circuit().answered();
            self.pacing.observe(sent.elapsed());
            if let Some(time) = self.codec.clock(reply) {
                self.link.clock().observe(Reading::of_millis(sent, Instant::now(), time));
            }
        }
        outcome
    }

    /// Delivers `answers` to the callers of `batch`. Returns the jobs that the server refused as late
    /// although their callers still wait. The server refuses such a job if another job in the call
    /// had an earlier deadline, or if the shard's clock was set.
    fn answer(&self, batch: Jobs<C>, answers: Vec<Result<C::Answer, StepError>>) -> Jobs<C> {
        let missing = std::iter::repeat_with(|| Err(StepError::Corrupt));
        let late = BatcherError::Step(StepError::Late);
        let again = batch.complete_each(
            answers.into_iter().chain(missing).map(|answer| answer.map_err(BatcherError::Step)),
            |error| *error == late,
        );
        self.counters.late(again.len());
        again
    }

    /// Reacts to an error reply to `batch`. Returns the jobs for which the error proves that the
    /// server did not execute them.
    async fn fail(
        &self,
        connection: &Connection,
        claimed: &ClaimedConnection,
        batch: Jobs<C>,
        error: &RedisError,
        last: Instant,
    ) -> Jobs<C> {
        match self.codec.error_action(error) {
            ErrorAction::Reencode => return batch,
            ErrorAction::Load => {
                // If loading the step fails, the reply to the next call contains the reason.
                let _ = timeout_at(last, self.load(connection, claimed.since())).await;
                return batch;
            }
            ErrorAction::Nothing => {}
        }
        if batch.route().is_of_a_cluster()
            && let Some(redirect) = Redirect::of(error, connection.address())
        {
            // The server works but does not own the slot. The sender of the job follows the
            // redirect.
            self.link.circuit().answered();
            batch.complete_all(&BatcherError::Redirected(redirect));
            return Jobs::<C>::new();
        }
        match classify(error) {
            ErrorClass::Unfit => {
                if !is_busy(error) && self.link.uses(connection) {
                    self.link.epochs().refuse(Instant::now());
                }
                self.leave(connection);
                self.link.report(connection.generation, Fault::Unfit);
                batch
            }
            ErrorClass::Ended => {
                // The end of an additional connection does not affect the other connections.
                if !claimed.is_additional() {
                    self.leave(connection);
                    self.link.report(connection.generation, Fault::Ended);
                }
                batch.complete_all(&BatcherError::Lost);
                Jobs::<C>::new()
            }
            ErrorClass::Refused => {
                self.link.circuit().answered();
                let code = error.code().unwrap_or_else(|| error.category());
                batch.complete_all(&BatcherError::Refused(code.to_owned()));
                Jobs::<C>::new()
            }
        }
    }

    /// Loads the step into the server, unless another call has loaded the step after `sent`, the
    /// time at which the failed call was sent. If several calls find that the step is missing, one
    /// call loads the step, and the other calls wait.
    async fn load(&self, connection: &Connection, sent: Instant) {
        let mut loaded = self.loaded.lock().await;
        if loaded.is_some_and(|at| sent < at) {
            return;
        }
        if self.codec.load(&mut connection.handle()).await.is_ok() {
            *loaded = Some(Instant::now());
        }
    }

    /// Excludes `connection` from all further calls.
    pub(super) fn leave(&self, connection: &Connection) {
        self.left.fetch_max(connection.generation, Ordering::Relaxed);
    }
}

/// Classifies error replies. Only the errors that are listed in this function prove that no job was
/// executed. After any other error, the jobs are not sent again.
fn classify(error: &RedisError) -> ErrorClass {
    match error.kind() {
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::Moved
            | ServerErrorKind::Ask
            | ServerErrorKind::TryAgain,
        ) => ErrorClass::Unfit,
        // The client library has no names for these error codes.
        _ if matches!(error.code(), Some("NOREPLICAS" | "BUSY")) => ErrorClass::Unfit,
        _ if is_refused_write(error) => ErrorClass::Unfit,
        ErrorKind::Server(_) | ErrorKind::Extension => ErrorClass::Refused,
        _ => ErrorClass::Ended,
    }
}

/// Returns whether a cluster node serves no slot. A node also reports that one slot has no owner,
/// and serves the other slots then.
fn is_cluster_down(error: &RedisError) -> bool {
    let is_of_one_slot = |detail: &str| detail.starts_with("Hash slot not served");
    error.kind() == ErrorKind::Server(ServerErrorKind::ClusterDown)
        && !error.detail().is_some_and(is_of_one_slot)
}

/// Returns whether the server executes no command for a while. Another connection to such a server
/// is established only after this while, so it shows that the server serves calls again.
fn is_busy(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::BusyLoading) || error.code() == Some("BUSY")
}

/// Returns whether the server rejected the first write of a script. In that case, the script has
/// written nothing. Before Redis 7.0, the server wraps this error in another error without a code.
fn is_refused_write(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    ["-READONLY ", "-NOREPLICAS "].iter().any(|code| detail.contains(code))
}
