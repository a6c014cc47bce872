//! The codec of the step, which encodes jobs into commands and decodes replies into readings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tokio::time::Instant;
use tollgate_core::{Reading, Timestamp};

use crate::answer::Answer;
use crate::client_role::ClientRole;
use crate::codec::{Codec, ErrorAction, ReplicaFitness, ReplicaNeeds};
use crate::command::{CHARGE_BYTES, Command, JOB_BYTES, KeyCreation};
use crate::error::StepError;
use crate::job::{Job, Op};
use crate::offset::ClockAt;
use crate::reply;
use crate::script::{
    Access, ReadVerb, RuntimeChoice, RuntimeInfo, STEP, StepRuntime, is_out_of_memory, is_unloaded,
    is_without_module,
};

/// The number of commands that create no keys after a server reported that it is out of memory. The
/// next command tries again to create keys.
const TIGHT_COMMANDS: u32 = 64;

/// The longest time for which commands create no keys after a server reported that it is out of
/// memory. To a server with few subjects, the next [`TIGHT_COMMANDS`] commands may take minutes.
const TIGHT_TIME: Duration = Duration::from_secs(1);

/// The codec for the step in one server.
#[derive(Debug)]
pub(crate) struct StepCodec {
    choice: RuntimeChoice,
    client_role: ClientRole,
    /// How the step runs in the server, and the commands for reads. The codecs of the server's
    /// replicas share this value.
    ways: Arc<AtomicRuntimeInfo>,
    /// How the step runs in the primary of this server. `None` if this server is not a replica.
    primary: Option<Arc<AtomicRuntimeInfo>>,
    tight_commands_left: AtomicU32,
    /// The end of [`TIGHT_TIME`], in ms since `created`.
    tight_until: AtomicU64,
    created: Instant,
}

impl StepCodec {
    /// Creates a codec for a server that is not connected yet. Until [`Codec::load`], the codec
    /// uses the step as a script.
    pub(crate) fn new(choice: RuntimeChoice, client_role: ClientRole) -> Self {
        Self {
            choice,
            client_role,
            ways: Arc::default(),
            primary: None,
            tight_commands_left: AtomicU32::new(0),
            tight_until: AtomicU64::new(0),
            created: Instant::now(),
        }
    }

    /// Returns a codec for a replica of this server, for jobs that only read.
    pub(crate) fn for_replica(&self) -> Self {
        Self { primary: Some(Arc::clone(&self.ways)), ..Self::new(self.choice, self.client_role) }
    }

    /// Returns how the step runs in the server: as a module, a function or a script.
    pub(crate) fn runtime(&self) -> StepRuntime {
        self.ways.get().map_or(StepRuntime::Script, |ways| ways.runs)
    }

    /// Returns whether the next command for `jobs` only reads or may write to the server's keys. If
    /// the command may write, counts it as [`room`](Self::room) does.
    fn access(&self, jobs: &[Job]) -> Access {
        if jobs.iter().all(Job::is_read_only) {
            return Access::Read(self.ways.get().map_or(ReadVerb::Plain, |ways| ways.reads));
        }
        Access::Write(self.room())
    }

    /// Returns whether the next command may create keys, and counts this command. After the server
    /// reported that it is out of memory, the commands within [`TIGHT_TIME`] may not create keys, at
    /// most [`TIGHT_COMMANDS`] of them.
    fn room(&self) -> KeyCreation {
        let fewer = |left: u32| left.checked_sub(1);
        // The clock is read only after such a report.
        match self.tight_commands_left.try_update(Ordering::Relaxed, Ordering::Relaxed, fewer) {
            Ok(_) if self.millis() < self.tight_until.load(Ordering::Relaxed) => {
                KeyCreation::Denied
            }
            _ => KeyCreation::Allowed,
        }
    }

    /// Lets the next commands create no keys, because the server is out of memory.
    fn deny_keys(&self) {
        let until = self.millis().saturating_add(millis(TIGHT_TIME));
        self.tight_until.store(until, Ordering::Relaxed);
        self.tight_commands_left.store(TIGHT_COMMANDS, Ordering::Relaxed);
    }

    /// Returns the time since this value was created, in ms.
    fn millis(&self) -> u64 {
        millis(self.created.elapsed())
    }
}

impl Codec for StepCodec {
    type Job = Job;
    type Answer = Answer;

    fn encode(&self, jobs: &[Job], deadline: Option<Timestamp>) -> Cmd {
        let access = self.access(jobs);
        let room = match access {
            Access::Write(room) => room,
            Access::Read(_) => KeyCreation::Allowed,
        };
        let runs = self.runtime();
        STEP.call(runs, access, &Command::new(jobs, room, deadline, runs.layout()))
    }

    fn decode(&self, jobs: &[Job], reply: Value) -> Vec<Result<Answer, StepError>> {
        match reply {
            Value::BulkString(bytes) => reply::decode(jobs, &bytes),
            _ => vec![Err(StepError::Corrupt); jobs.len()],
        }
    }

    fn wrote(&self, jobs: &[Job], answers: &[Result<Answer, StepError>]) -> bool {
        // A script that writes nothing can succeed in a server that rejects writes.
        jobs.iter().zip(answers).any(|(job, answer)| match answer {
            Ok(Answer::Readings(readings)) => {
                let is_changed = |reading: &Reading| reading.refunded > 0 || reading.added > 0;
                (readings.all_admitted() && job.takes_units()) || readings.iter().any(is_changed)
            }
            Ok(Answer::Joined) => true,
            Ok(Answer::CellTransfer(_)) | Err(_) => false,
        })
    }

    fn clock(&self, reply: &Value) -> Option<Timestamp> {
        match reply {
            Value::BulkString(bytes) => reply::clock(bytes),
            _ => None,
        }
    }

    fn retime(&self, jobs: &mut [Job], shard: ClockAt) {
        jobs.iter_mut().for_each(|job| job.retime(shard));
    }

    fn job_bytes(&self, job: &Job) -> usize {
        let charges = job.charges.iter().map(|operation| {
            let more = match &operation.op {
                Op::RefundGuarded { guard, .. } => guard.len(),
                Op::Join { cell } => cell.len(),
                _ => 0,
            };
            CHARGE_BYTES + operation.key.len() + more
        });
        JOB_BYTES + charges.sum::<usize>()
    }

    async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let ways = match (&self.primary, self.client_role) {
            (None, ClientRole::ReadWrite) => STEP.load(connection, self.choice).await?,
            (None, ClientRole::ReadOnly) => STEP.predict(connection, self.choice).await?,
            // A replica has the step if its primary has the step, so the check of the primary is
            // enough.
            (Some(_), ClientRole::ReadOnly) => return Ok(()),
            (Some(primary), ClientRole::ReadWrite) => {
                let runs = primary.get().map(|ways| ways.runs);
                STEP.find(connection, self.choice, runs).await?
            }
        };
        self.ways.set(ways);
        Ok(())
    }

    fn replica_needs(&self) -> ReplicaNeeds {
        match self.ways.get() {
            Some(RuntimeInfo { runs: StepRuntime::Tables, .. }) => ReplicaNeeds::Module,
            _ => ReplicaNeeds::Nothing,
        }
    }

    async fn check_replica(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<ReplicaFitness> {
        match STEP.find(connection, RuntimeChoice::Tables, None).await {
            Ok(_) => Ok(ReplicaFitness::Fit),
            Err(error) if is_without_module(&error) => Ok(ReplicaFitness::WithoutModule),
            Err(error) => Err(error),
        }
    }

    fn error_action(&self, error: &RedisError) -> ErrorAction {
        if is_unloaded(error) || is_without_module(error) {
            ErrorAction::Load
        } else if is_out_of_memory(error) {
            self.deny_keys();
            ErrorAction::Reencode
        } else {
            ErrorAction::Nothing
        }
    }
}

/// Converts `time` to whole milliseconds, rounded down.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A [`RuntimeInfo`] that is unknown at first. Any thread can read or set it.
#[derive(Debug, Default)]
struct AtomicRuntimeInfo(AtomicU8);

impl AtomicRuntimeInfo {
    const KNOWN: u8 = 1;
    const READ_ONLY: u8 = 2;
    const FUNCTION: u8 = 4;
    const MODULE: u8 = 8;
    const TABLES: u8 = 16;

    fn get(&self) -> Option<RuntimeInfo> {
        let bits = self.0.load(Ordering::Relaxed);
        let has = |bit| bits & bit != 0;
        has(Self::KNOWN).then(|| RuntimeInfo {
            runs: match bits & (Self::FUNCTION | Self::MODULE | Self::TABLES) {
                Self::FUNCTION => StepRuntime::Function,
                Self::MODULE => StepRuntime::Module,
                Self::TABLES => StepRuntime::Tables,
                _ => StepRuntime::Script,
            },
            reads: if has(Self::READ_ONLY) { ReadVerb::ReadOnly } else { ReadVerb::Plain },
        })
    }

    fn set(&self, ways: RuntimeInfo) {
        let runs = match ways.runs {
            StepRuntime::Function => Self::FUNCTION,
            StepRuntime::Module => Self::MODULE,
            StepRuntime::Tables => Self::TABLES,
            StepRuntime::Script => 0,
        };
        let read_only = if ways.reads == ReadVerb::ReadOnly { Self::READ_ONLY } else { 0 };
        self.0.store(Self::KNOWN | runs | read_only, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tollgate_conformance::PlainHash;
    use tollgate_core::algo::SlidingLog;
    use tollgate_core::{
        Admission, Algorithm, Charge, ChargeId, Cost, Deduplication, Limit, Millis, Operation,
        Reading, Subject,
    };

    use super::*;
    use crate::key::Keys;

    /// The defect: after the error, a server that received few commands received no new keys for
    /// minutes, although its memory was free again.
    #[test]
    fn a_server_with_few_commands_receives_new_keys_soon_after_it_was_out_of_memory() {
        let mut codec = StepCodec::new(RuntimeChoice::Best, ClientRole::ReadWrite);
        assert_eq!(codec.room(), KeyCreation::Allowed);
        codec.deny_keys();
        assert_eq!(codec.room(), KeyCreation::Denied);
        codec.created -= TIGHT_TIME;
        assert_eq!(codec.room(), KeyCreation::Allowed);
    }

    #[test]
    fn a_busy_server_receives_new_keys_after_some_commands() {
        let codec = StepCodec::new(RuntimeChoice::Best, ClientRole::ReadWrite);
        codec.deny_keys();
        let denied = (0..=TIGHT_COMMANDS).filter(|_| codec.room() == KeyCreation::Denied).count();
        assert_eq!(denied, TIGHT_COMMANDS as usize);
    }

    /// A script that refuses a charge succeeds in a primary that rejects writes.
    #[test]
    fn only_an_admitted_charge_proves_a_write() {
        let codec = StepCodec::new(RuntimeChoice::Best, ClientRole::ReadWrite);
        let (now, window) = (Timestamp::from_millis(20_000), Millis::from_secs(60));
        let log = SlidingLog::new(5, window).unwrap();
        let limit = Limit::new("limit", Algorithm::SlidingLog(log)).unwrap();
        let job = |operation| {
            let charges = [Charge { limit: &limit, subject: &Subject::default(), operation }];
            Job::new(&Keys::new(PlainHash), now, &charges)
        };
        let charge = job(Operation::Charge { cost: Cost::ONE, id: ChargeId(1) });
        let peek = job(Operation::Peek { cost: Cost::ONE });
        let wrote = |job: &Job, admission| {
            let readings = [Reading { admission, ..Reading::default() }].into_iter().collect();
            codec.wrote(std::slice::from_ref(job), &[Ok(Answer::Readings(readings))])
        };
        assert!(wrote(&charge, Admission::Now));
        assert!(!wrote(&charge, Admission::Never));
        assert!(!wrote(&peek, Admission::Now));
        // The window of the refunded charge is over, or there is nothing to forget.
        let refund = Operation::Refund {
            cost: Cost::ONE,
            position: Reading::default().position,
            id: ChargeId(2),
            deduplication: Deduplication::Unneeded,
        };
        assert!(!wrote(&job(refund), Admission::Now));
        assert!(!wrote(&job(Operation::Reset), Admission::Now));
        assert!(!codec.wrote(&[charge], &[Err(StepError::Late)]));
    }
}
