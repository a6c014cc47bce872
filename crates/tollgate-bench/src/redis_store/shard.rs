//! Tollgate's Redis store as a contender, called in the same way as the limiter calls it.

use std::error::Error;
use std::time::Duration;

use tollgate::model::{Charge, ChargeId, Cost, Limit, Operation, Store, Subject, Value};
use tollgate::{Clock, HashKey, SystemClock};
use tollgate_redis::{Keys, RedisShard, RuntimeChoice, ShardSettings, StepRuntime};

use super::contender::{Contender, ContenderError, limits};
use crate::contender::{NoSecrets, subject_name};

/// The longest time for connecting to the server.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The deadline of a decision. No decision takes so long. The two-key script has no deadline, and a
/// missed deadline would end the run.
const DEADLINE: Duration = Duration::from_secs(10);

/// A shard with one server, and the limits that are charged.
#[derive(Debug)]
pub struct Shard {
    name: &'static str,
    store: RedisShard,
    limits: Vec<Limit>,
}

impl Shard {
    /// Connects to the server at `url`. The store uses its own keys, which no other contender uses.
    /// Every limit has `quota` units.
    ///
    /// # Errors
    /// The error of the connection.
    pub async fn connect(
        name: &'static str,
        url: &str,
        choice: RuntimeChoice,
        quota: u64,
    ) -> Result<Self, Box<dyn Error>> {
        let keys = Keys::new(HashKey::from_secret(name.as_bytes()));
        let settings = ShardSettings::new(url.parse()?);
        let store = RedisShard::open(&settings, keys, choice).with_deadline(DEADLINE);
        store.ready(READY_WITHIN).await?;
        Ok(Self { name, store, limits: limits(quota)? })
    }

    /// Returns the form in which the step runs on the server.
    #[must_use]
    pub fn runtime(&self) -> StepRuntime {
        self.store.runtime()
    }
}

impl Contender for Shard {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn decide(&self, subject: u32, limits: usize) -> Result<bool, ContenderError> {
        let name = subject_name(subject);
        let subject = Subject::new([("user", Value::Clear(name.as_bytes()))], &NoSecrets);
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
        let charge = |limit| Charge { limit, subject: &subject, operation };
        let charges: Vec<_> = self.limits[..limits].iter().map(charge).collect();
        let readings = self.store.apply(SystemClock.now(), &charges).await;
        readings.map(|readings| readings.all_admitted()).map_err(ContenderError::Store)
    }

    fn calls(&self) -> Option<u64> {
        self.store.status().first().map(|batcher| batcher.counts.calls)
    }
}
