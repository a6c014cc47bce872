//! Jobs as commands of the step, and its replies as readings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tollgate_core::Timestamp;

use crate::answer::Answer;
use crate::codec::{Codec, Remedy};
use crate::command::{ASK_BYTES, Command, JOB_BYTES, Room};
use crate::error::StepError;
use crate::job::{Job, Op};
use crate::presence::Presence;
use crate::reply;
use crate::script::{Access, Choice, ReadVerb, Runs, STEP, Ways, is_out_of_memory, is_unloaded};

/// After a server said that it is out of memory, so many commands make no keys before one tries.
const TIGHT_COMMANDS: u32 = 64;

/// The codec of one server's step.
#[derive(Debug)]
pub(crate) struct StepCodec {
    choice: Choice,
    presence: Presence,
    /// How the step runs in the server, shared with those of its replicas.
    ways: Arc<KnownWays>,
    /// Of a replica: how it runs in its primary.
    primary: Option<Arc<KnownWays>>,
    tight_commands_left: AtomicU32,
}

impl StepCodec {
    /// A codec for a server of which nothing is known yet; until [`Codec::load`] it speaks to one
    /// that has the script.
    pub(crate) fn new(choice: Choice, presence: Presence) -> Self {
        let (ways, tight_commands_left) = (Arc::default(), AtomicU32::new(0));
        Self { choice, presence, ways, primary: None, tight_commands_left }
    }

    /// A codec for a replica of this one's server: of jobs that only read.
    pub(crate) fn for_replica(&self) -> Self {
        Self { primary: Some(Arc::clone(&self.ways)), ..Self::new(self.choice, self.presence) }
    }

    /// How the step runs in the server.
    pub(crate) fn runs(&self) -> Runs {
        self.ways.get().map_or(Runs::Script, |ways| ways.runs)
    }

    /// How the next command for `jobs` goes about the server's keys.
    fn access(&self, jobs: &[Job]) -> Access {
        if jobs.iter().all(Job::only_reads) {
            return Access::Read(self.ways.get().map_or(ReadVerb::Plain, |ways| ways.reads));
        }
        Access::Write(self.room())
    }

    /// Whether the next command may make keys.
    fn room(&self) -> Room {
        let fewer = |left: u32| left.checked_sub(1);
        match self.tight_commands_left.try_update(Ordering::Relaxed, Ordering::Relaxed, fewer) {
            Ok(_) => Room::Tight,
            Err(_) => Room::Open,
        }
    }
}

impl Codec for StepCodec {
    type Job = Job;
    type Answer = Answer;

    fn encode(&self, jobs: &[Job], deadline: Option<Timestamp>) -> Cmd {
        let access = self.access(jobs);
        let room = match access {
            Access::Write(room) => room,
            Access::Read(_) => Room::Open,
        };
        STEP.call(self.runs(), access, &Command::new(jobs, room, deadline))
    }

    fn decode(&self, jobs: &[Job], reply: Value) -> Vec<Result<Answer, StepError>> {
        match reply {
            Value::BulkString(bytes) => reply::decode(jobs, &bytes),
            _ => vec![Err(StepError::Corrupt); jobs.len()],
        }
    }

    fn clock(&self, reply: &Value) -> Option<Timestamp> {
        match reply {
            Value::BulkString(bytes) => reply::clock(bytes),
            _ => None,
        }
    }

    fn job_bytes(&self, job: &Job) -> usize {
        let asks = job.asks.iter().map(|ask| {
            let more = match &ask.op {
                Op::RefundGuarded { guard, .. } => guard.len(),
                Op::Join { cell } => cell.len(),
                _ => 0,
            };
            ASK_BYTES + ask.key.len() + more
        });
        JOB_BYTES + asks.sum::<usize>()
    }

    async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let ways = match (&self.primary, self.presence) {
            (None, Presence::Node) => STEP.load(connection, self.choice).await?,
            (None, Presence::Observer) => STEP.foresee(connection, self.choice).await?,
            // It has the step when its primary has, of which it is seen.
            (Some(_), Presence::Observer) => return Ok(()),
            (Some(primary), Presence::Node) => {
                let runs = primary.get().map(|ways| ways.runs);
                STEP.find(connection, self.choice, runs).await?
            }
        };
        self.ways.set(ways);
        Ok(())
    }

    fn remedy(&self, error: &RedisError) -> Remedy {
        if is_unloaded(error) {
            Remedy::Load
        } else if is_out_of_memory(error) {
            self.tight_commands_left.store(TIGHT_COMMANDS, Ordering::Relaxed);
            Remedy::Reencode
        } else {
            Remedy::Nothing
        }
    }
}

/// [`Ways`], once they are known, to read and to set from any thread.
#[derive(Debug, Default)]
struct KnownWays(AtomicU8);

impl KnownWays {
    const KNOWN: u8 = 1;
    const FUNCTION: u8 = 2;
    const READ_ONLY: u8 = 4;

    fn get(&self) -> Option<Ways> {
        let bits = self.0.load(Ordering::Relaxed);
        let has = |bit| bits & bit != 0;
        has(Self::KNOWN).then(|| Ways {
            runs: if has(Self::FUNCTION) { Runs::Function } else { Runs::Script },
            reads: if has(Self::READ_ONLY) { ReadVerb::ReadOnly } else { ReadVerb::Plain },
        })
    }

    fn set(&self, ways: Ways) {
        let function = if ways.runs == Runs::Function { Self::FUNCTION } else { 0 };
        let read_only = if ways.reads == ReadVerb::ReadOnly { Self::READ_ONLY } else { 0 };
        self.0.store(Self::KNOWN | function | read_only, Ordering::Relaxed);
    }
}
