//! A codec for tests. The step of the codec counts how often each key was charged and how often
//! each job was executed.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Script, Value};
use tollgate_core::Timestamp;

use super::kit::Server;
use crate::codec::{Codec, ErrorAction};
use crate::error::StepError;
use crate::offset::ClockAt;

/// The key of a hash that contains, for each job id, how often that job was executed.
const RAN: &str = "ran";

const STEP: &str = r"
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = tonumber(ARGV[1])
if deadline > 0 and clock > deadline then
  return { 1, clock }
end
local answers = { 0, clock }
for place = 2, #KEYS do
  answers[place + 1] = redis.call('INCR', KEYS[place])
  redis.call('HINCRBY', KEYS[1], ARGV[place], 1)
end
return answers
";

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(STEP));

/// The codec that counts executed jobs.
pub(super) struct Tally;

/// A job that adds one to a key.
pub(super) struct Job {
    key: String,
    id: u64,
}

impl Tally {
    pub(super) fn arc() -> Arc<Self> {
        Arc::new(Self)
    }
}

impl Job {
    pub(super) fn new(key: &str, id: u64) -> Self {
        Self { key: key.to_owned(), id }
    }
}

impl Codec for Tally {
    type Job = Job;
    type Answer = i64;

    fn encode(&self, jobs: &[Job], deadline: Option<Timestamp>) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(SCRIPT.get_hash()).arg(jobs.len() + 1).arg(RAN);
        for job in jobs {
            command.arg(&job.key);
        }
        command.arg(deadline.map_or(0, Timestamp::as_millis));
        for job in jobs {
            command.arg(job.id);
        }
        command
    }

    fn decode(&self, jobs: &[Job], reply: Value) -> Vec<Result<i64, StepError>> {
        match redis::from_redis_value::<Vec<i64>>(reply).as_deref() {
            Ok([0, _clock, answers @ ..]) => answers.iter().copied().map(Ok).collect(),
            Ok([1, _clock]) => jobs.iter().map(|_| Err(StepError::Late)).collect(),
            _ => Vec::new(),
        }
    }

    fn wrote(&self, _jobs: &[Job], answers: &[Result<i64, StepError>]) -> bool {
        answers.iter().any(Result::is_ok)
    }

    fn clock(&self, reply: &Value) -> Option<Timestamp> {
        let numbers: Vec<u64> = redis::from_redis_value_ref(reply).ok()?;
        numbers.get(1).copied().map(Timestamp::from_millis)
    }

    fn retime(&self, _jobs: &mut [Job], _shard: ClockAt) {}

    fn job_bytes(&self, job: &Job) -> usize {
        job.key.len() + 24
    }

    async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        redis::cmd("SCRIPT").arg("LOAD").arg(STEP).exec_async(connection).await
    }

    fn error_action(&self, error: &RedisError) -> ErrorAction {
        if error.code() == Some("NOSCRIPT") { ErrorAction::Load } else { ErrorAction::Nothing }
    }
}

/// Returns how often each job was executed, as recorded in the server.
pub(super) async fn ran(server: &Server) -> BTreeMap<u64, u64> {
    let mut connection = server.connect().await;
    redis::cmd("HGETALL").arg(RAN).query_async(&mut connection).await.unwrap()
}

/// Returns the count of `key` in the server.
pub(super) async fn count(server: &Server, key: &str) -> i64 {
    let mut connection = server.connect().await;
    redis::cmd("GET")
        .arg(key)
        .query_async::<Option<i64>>(&mut connection)
        .await
        .unwrap()
        .unwrap_or(0)
}
