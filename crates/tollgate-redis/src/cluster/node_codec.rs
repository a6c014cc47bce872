//! The codec for the step on one cluster node.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tollgate_core::Timestamp;

use crate::answer::Answer;
use crate::client_role::ClientRole;
use crate::codec::{Codec, ErrorAction};
use crate::error::StepError;
use crate::job::Job;
use crate::offset::ClockAt;
use crate::script::{RuntimeChoice, StepRuntime, query};
use crate::step_codec::StepCodec;

/// The codec for one cluster node. The only difference from the codec for a single server is that a
/// connection to a replica begins with `READONLY`. Without this command, replicas in a cluster do
/// not answer reads.
#[derive(Debug)]
pub(super) struct NodeCodec {
    step: StepCodec,
    kind: CommandKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandKind {
    Decide,
    Read,
}

impl NodeCodec {
    /// Creates the codec for a node. In a cluster, the state of each subject has a key of its own.
    /// The tables of [`RuntimeChoice::Tables`] are not used, because a table contains subjects of
    /// many slots.
    pub(super) fn new(choice: RuntimeChoice, client_role: ClientRole) -> Self {
        let choice = if choice == RuntimeChoice::Tables { RuntimeChoice::Best } else { choice };
        Self { step: StepCodec::new(choice, client_role), kind: CommandKind::Decide }
    }

    /// Returns a codec for a replica of this node.
    pub(super) fn for_replica(&self) -> Self {
        Self { step: self.step.for_replica(), kind: CommandKind::Read }
    }

    pub(super) fn runtime(&self) -> StepRuntime {
        self.step.runtime()
    }
}

impl Codec for NodeCodec {
    type Job = Job;
    type Answer = Answer;

    fn encode(&self, jobs: &[Job], deadline: Option<Timestamp>) -> Cmd {
        self.step.encode(jobs, deadline)
    }

    fn decode(&self, jobs: &[Job], reply: Value) -> Vec<Result<Answer, StepError>> {
        self.step.decode(jobs, reply)
    }

    fn wrote(&self, jobs: &[Job], answers: &[Result<Answer, StepError>]) -> bool {
        self.step.wrote(jobs, answers)
    }

    fn clock(&self, reply: &Value) -> Option<Timestamp> {
        self.step.clock(reply)
    }

    fn retime(&self, jobs: &mut [Job], shard: ClockAt) {
        self.step.retime(jobs, shard);
    }

    fn job_bytes(&self, job: &Job) -> usize {
        self.step.job_bytes(job)
    }

    async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        if self.kind == CommandKind::Read {
            query(connection, &redis::cmd("READONLY")).await?;
        }
        self.step.load(connection).await
    }

    fn error_action(&self, error: &RedisError) -> ErrorAction {
        self.step.error_action(error)
    }
}
