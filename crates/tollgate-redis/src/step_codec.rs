//! Jobs as commands of the step, and its replies as readings.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tollgate_core::{Readings, Timestamp};

use crate::codec::{Codec, Remedy};
use crate::command::{ASK_BYTES, Command, JOB_BYTES, Room};
use crate::error::StepError;
use crate::job::{Job, Op};
use crate::reply;
use crate::script::{Choice, Runs, STEP, is_out_of_memory, is_unloaded};

/// After a server said that it is out of memory, so many commands make no keys before one tries.
const TIGHT_COMMANDS: u32 = 64;

/// The codec of one server's step.
#[derive(Debug)]
pub(crate) struct StepCodec {
    choice: Choice,
    runs: AtomicU8,
    tight_commands_left: AtomicU32,
}

const SCRIPT: u8 = 0;
const FUNCTION: u8 = 1;

impl StepCodec {
    /// A codec for a server of which nothing is known yet; until [`Codec::load`] it speaks to one
    /// that has the script.
    pub(crate) const fn new(choice: Choice) -> Self {
        Self { choice, runs: AtomicU8::new(SCRIPT), tight_commands_left: AtomicU32::new(0) }
    }

    /// How the step runs in the server.
    pub(crate) fn runs(&self) -> Runs {
        match self.runs.load(Ordering::Relaxed) {
            FUNCTION => Runs::Function,
            _ => Runs::Script,
        }
    }

    fn set_runs(&self, runs: Runs) {
        let code = match runs {
            Runs::Function => FUNCTION,
            Runs::Script => SCRIPT,
        };
        self.runs.store(code, Ordering::Relaxed);
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
    type Answer = Readings;

    fn encode(&self, jobs: &[Job], deadline: Option<Timestamp>) -> Cmd {
        let room = self.room();
        STEP.call(self.runs(), room, &Command::new(jobs, room, deadline))
    }

    fn decode(&self, jobs: &[Job], reply: Value) -> Vec<Result<Readings, StepError>> {
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
            let guard = match &ask.op {
                Op::RefundGuarded { guard, .. } => guard.len(),
                _ => 0,
            };
            ASK_BYTES + ask.key.len() + guard
        });
        JOB_BYTES + asks.sum::<usize>()
    }

    async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        self.set_runs(STEP.load(connection, self.choice).await?);
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
