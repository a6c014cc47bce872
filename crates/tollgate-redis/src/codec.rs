//! The codec of a batcher: encodes jobs into one command and decodes their answers from the reply.

use std::future::Future;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tollgate_core::Timestamp;

use crate::error::StepError;
use crate::offset::ClockAt;

/// Encodes jobs into one command, and decodes its reply into answers.
///
/// The server executes the jobs of one command one after the other, each of them all or nothing.
pub(crate) trait Codec: Send + Sync + 'static {
    /// One caller's request to one shard.
    type Job: Send + 'static;
    /// The answer to a job.
    type Answer: Send + 'static;

    /// Returns one command that executes `jobs` in their order.
    ///
    /// With a `deadline`, by the shard's clock, the server refuses all jobs if it starts the
    /// command later, because then no caller waits for the answers.
    fn encode(&self, jobs: &[Self::Job], deadline: Option<Timestamp>) -> Cmd;

    /// Returns one answer for each of `jobs`, in their order.
    fn decode(&self, jobs: &[Self::Job], reply: Value) -> Vec<Result<Self::Answer, StepError>>;

    /// Returns the shard's clock at the time of the reply. The reply contains it if the command had
    /// a deadline.
    fn clock(&self, reply: &Value) -> Option<Timestamp>;

    /// Replaces the times of `jobs` that differ too much from the shard's clock, just before they
    /// are encoded.
    fn retime(&self, jobs: &mut [Self::Job], shard: ClockAt);

    /// Returns the approximate size in bytes that `job` adds to a command.
    fn job_bytes(&self, job: &Self::Job) -> usize;

    /// Prepares the server for commands of this codec. Called once for each new connection, and
    /// again after [`Remedy::Load`].
    fn load(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> impl Future<Output = RedisResult<()>> + Send;

    /// Returns the needs of the server's replicas: see [`ReplicaNeeds`].
    fn replica_needs(&self) -> ReplicaNeeds {
        ReplicaNeeds::Nothing
    }

    /// Checks whether a replica of the server can execute the server's commands.
    fn check_replica(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> impl Future<Output = RedisResult<ReplicaFitness>> + Send {
        let _ = connection;
        std::future::ready(Ok(ReplicaFitness::Fit))
    }

    /// Returns the reaction to an error reply to a command of this codec.
    fn remedy(&self, error: &RedisError) -> Remedy;
}

/// The reaction to an error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Nothing ran because the server does not have the step. Load it, then encode and send the
    /// jobs again.
    Load,
    /// Nothing ran because the server is out of memory. The codec has recorded that; encode and
    /// send the jobs again.
    Reencode,
    /// The codec has no remedy for this error.
    Nothing,
}

/// The needs of replicas that follow a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaNeeds {
    /// Any server can follow.
    Nothing,
    /// The server replicates the commands of the Tollgate module. A replica without the module
    /// rejects them, so its copy would differ from the primary's.
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
