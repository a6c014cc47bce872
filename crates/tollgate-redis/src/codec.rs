//! What a batcher carries: jobs that become one command, and the answers in its reply.

use std::future::Future;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tollgate_core::Timestamp;

use crate::error::StepError;

/// Turns jobs into one command and its reply into answers.
///
/// The jobs of one command are decided one after the other inside the server, each all or nothing.
pub(crate) trait Codec: Send + Sync + 'static {
    /// What one caller asks of one shard.
    type Job: Send + 'static;
    /// What it is told.
    type Answer: Send + 'static;

    /// One command that carries out `jobs` in their order.
    ///
    /// With a `deadline`, on the shard's clock, the server refuses all of them if it comes to the
    /// command later: nobody waits for the answers any more.
    fn encode(&self, jobs: &[Self::Job], deadline: Option<Timestamp>) -> Cmd;

    /// One answer for each of `jobs`, in their order.
    fn decode(&self, jobs: &[Self::Job], reply: Value) -> Vec<Result<Self::Answer, StepError>>;

    /// The shard's clock when it answered, where the reply tells it: it does if the command had a
    /// deadline.
    fn clock(&self, reply: &Value) -> Option<Timestamp>;

    /// What `job` adds to a command, in bytes, about.
    fn job_bytes(&self, job: &Self::Job) -> usize;

    /// Makes the server ready for commands of this codec: once for each new connection, and again
    /// when [`Remedy::Load`] asks for it.
    fn load(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> impl Future<Output = RedisResult<()>> + Send;

    /// What to do about an error reply to a command of this codec.
    fn remedy(&self, error: &RedisError) -> Remedy;
}

/// What an error reply proves and asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Nothing ran, for the server lost the step: load it, encode the jobs anew, send them again.
    Load,
    /// Nothing ran, for the server is out of memory: the codec took note; encode the jobs anew and
    /// send them again.
    Reencode,
    /// None that the codec knows of.
    Nothing,
}
