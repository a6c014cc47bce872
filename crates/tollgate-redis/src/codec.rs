//! The codec of a batcher, which encodes jobs into one command and decodes the answers to the jobs
//! from the reply.

use std::future::Future;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tollgate_core::Timestamp;

use crate::error::StepError;
use crate::offset::ClockAt;

/// Encodes jobs into one command, and decodes the reply into answers to the jobs.
///
/// The server executes the jobs of one command one after the other. Each job is executed completely
/// or not at all.
pub(crate) trait Codec: Send + Sync + 'static {
    /// One caller's request to one shard.
    type Job: Send + 'static;
    /// The answer to a job.
    type Answer: Send + 'static;

    /// Returns one command that executes `jobs` in their order.
    ///
    /// If `deadline` is set and the shard's clock has passed the deadline when the server starts
    /// the command, the server refuses all jobs, because no caller waits for the answers any more.
    fn encode(&self, jobs: &[Self::Job], deadline: Option<Timestamp>) -> Cmd;

    /// Returns one answer for each of `jobs`, in their order.
    fn decode(&self, jobs: &[Self::Job], reply: Value) -> Vec<Result<Self::Answer, StepError>>;

    /// Returns whether `answers`, the answers to `jobs`, prove that the server executed a write.
    fn wrote(&self, jobs: &[Self::Job], answers: &[Result<Self::Answer, StepError>]) -> bool;

    /// Returns the time that the shard's clock showed when the server replied. The reply contains
    /// this time only if the command had a deadline.
    fn clock(&self, reply: &Value) -> Option<Timestamp>;

    /// Replaces the time of each job by the time of the shard's clock, if the two times differ too
    /// much. Called just before the jobs are encoded.
    fn retime(&self, jobs: &mut [Self::Job], shard: ClockAt);

    /// Returns the approximate size in bytes that `job` adds to a command.
    fn job_bytes(&self, job: &Self::Job) -> usize;

    /// Prepares the server for the commands of this codec. Called once for each new connection, and
    /// again when an error reply leads to [`ErrorAction::Load`].
    fn load(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> impl Future<Output = RedisResult<()>> + Send;

    /// Returns the requirements for replicas of the server.
    fn replica_needs(&self) -> ReplicaNeeds {
        ReplicaNeeds::Nothing
    }

    /// Checks whether a replica of the server can execute the commands that the server replicates.
    fn check_replica(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> impl Future<Output = RedisResult<ReplicaFitness>> + Send {
        let _ = connection;
        std::future::ready(Ok(ReplicaFitness::Fit))
    }

    /// Returns how to react to an error reply to a command of this codec.
    fn error_action(&self, error: &RedisError) -> ErrorAction;
}

/// How to react to an error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorAction {
    /// No job was executed, because the server does not have the step. The dispatcher must load the
    /// step, and then encode and send the jobs again.
    Load,
    /// No job was executed, because the server is out of memory. The codec has recorded that, and
    /// encodes the next commands without new keys. The dispatcher must encode and send the jobs
    /// again.
    Reencode,
    /// The codec has no reaction to this error. The dispatcher reacts to the kind of the error.
    Nothing,
}

/// The requirements for a replica that follows a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaNeeds {
    /// The replica needs nothing special, because the server replicates only commands that every
    /// server has.
    Nothing,
    /// The replica needs the Tollgate module, because the server replicates commands of this
    /// module. A replica without the module rejects these commands, so its copy would differ from
    /// the primary's data.
    Module,
}

/// Whether a server can follow a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaFitness {
    /// The replica can execute the commands that its primary replicates.
    Fit,
    /// The replica does not have the module.
    WithoutModule,
}
