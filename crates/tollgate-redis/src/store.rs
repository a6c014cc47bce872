//! The store for one Redis or Valkey server.

mod cells;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult, Value};
use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

use crate::answer::Answer;
use crate::client_role::ClientRole;
use crate::codec::{Codec, ErrorAction};
use crate::job::Job;
use crate::key::Keys;
use crate::script::{RuntimeChoice, StepRuntime, is_out_of_memory, query};
use crate::step_codec::StepCodec;

/// The most times that one call is sent. A call is sent again only if the server reports that no
/// part of the call was executed.
const MAX_SENDS: usize = 8;

/// A store that keeps the counters of limits in one Redis or Valkey server. The step in the server
/// decides each call.
///
/// The store is exact: a call is one command and one round trip, is atomic in the server, and
/// returns the same integers as [`tollgate_core::decide()`].
#[derive(Debug)]
pub struct Redis {
    connection: MultiplexedConnection,
    codec: StepCodec,
    keys: Keys,
}

impl Redis {
    /// Creates a store on `connection` and loads the step if the server does not have the step.
    ///
    /// # Errors
    /// The server's error, if the step can run in no way that `choice` permits.
    pub async fn new(
        mut connection: MultiplexedConnection,
        keys: Keys,
        choice: RuntimeChoice,
    ) -> RedisResult<Self> {
        let codec = StepCodec::new(choice, ClientRole::ReadWrite);
        codec.load(&mut connection).await?;
        Ok(Self { connection, codec, keys })
    }

    /// Returns how the step runs in the server: as a module, a function or a script.
    #[must_use]
    pub fn runtime(&self) -> StepRuntime {
        self.codec.runtime()
    }

    /// Executes `calls` one after the other, in one round trip. Each call is executed as
    /// [`Store::apply`] executes it.
    ///
    /// # Errors
    /// [`StoreError`] for each call that the server did not answer.
    pub async fn apply_all(
        &self,
        calls: &[(Timestamp, &[Charge<'_>])],
    ) -> Vec<Result<Readings, StoreError>> {
        let job = |(now, charges): &(Timestamp, &[Charge<'_>])| Job::new(&self.keys, *now, charges);
        let jobs: Vec<_> = calls.iter().map(job).collect();
        let readings = |answer: Result<Answer, _>| Ok(answer?.into_readings()?);
        self.run(&jobs).await.into_iter().map(readings).collect()
    }

    async fn run_alone(&self, job: Job) -> Result<Answer, StoreError> {
        self.run(&[job]).await.pop().unwrap_or(Err(StoreError::Corrupt))
    }

    async fn run(&self, jobs: &[Job]) -> Vec<Result<Answer, StoreError>> {
        match self.send(jobs).await {
            Ok(reply) => {
                let answers = self.codec.decode(jobs, reply);
                answers.into_iter().map(|answer| answer.map_err(StoreError::from)).collect()
            }
            Err(error) => vec![Err(unanswered(&error)); jobs.len()],
        }
    }

    async fn send(&self, jobs: &[Job]) -> RedisResult<Value> {
        let mut connection = self.connection.clone();
        let mut attempts = 1;
        loop {
            let reply = query(&mut connection, &self.codec.encode(jobs, None)).await;
            let Err(error) = reply else { return reply };
            match self.codec.error_action(&error) {
                _ if attempts == MAX_SENDS => return Err(error),
                ErrorAction::Load => self.codec.load(&mut connection).await?,
                ErrorAction::Reencode => {}
                ErrorAction::Nothing => return Err(error),
            }
            attempts += 1;
        }
    }
}

impl Store for Redis {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Ok(self.run_alone(Job::new(&self.keys, now, charges)).await?.into_readings()?)
    }
}

/// Converts a Redis error to the store error of a call.
fn unanswered(error: &RedisError) -> StoreError {
    match error.code() {
        _ if is_out_of_memory(error) => StoreError::Full,
        Some("ERR" | "WRONGTYPE") => StoreError::Corrupt,
        _ if error.is_timeout() => StoreError::TimedOut,
        _ => StoreError::Unavailable,
    }
}
