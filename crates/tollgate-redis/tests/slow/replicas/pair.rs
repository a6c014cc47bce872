//! A primary, its replicas, and a store on them.

use std::collections::BTreeMap;

use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{
    Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Reading, Subject, Timestamp,
};
use tollgate_redis::{
    BatcherError, CircuitState, Credentials, Endpoint, Keys, LinkError, LinkLimits, RedisShard,
    RuntimeChoice, ShardSettings,
};

use crate::kit::{QUICK, Server, Version};
use crate::replicas::{NOW, PATIENCE, WINDOW, until};

/// The commands that run the step.
const STEPS: [&str; 4] = ["fcall", "fcall_ro", "evalsha", "evalsha_ro"];

/// A primary and a replica in sync with it.
pub(crate) struct Pair {
    pub(crate) primary: Server,
    pub(crate) replica: Server,
}

/// A store, and a limit to charge.
pub(crate) struct Client {
    pub(crate) store: RedisShard,
    limit: Limit,
}

impl Pair {
    pub(crate) async fn start(version: Version) -> Self {
        let primary = Server::start_version(version, &QUICK).await;
        let replica = Server::start_version(version, &QUICK).await;
        replica.follow(&primary).await;
        Self { primary, replica }
    }

    /// Returns settings for the pair, with long timeouts, so a machine that is busy with other
    /// tests does not look like a fault.
    pub(crate) fn settings(&self) -> ShardSettings {
        self.settings_with(&[], &Credentials::default())
    }

    /// Returns the same settings with the replicas in `more`, and with `user` as the user for all
    /// servers.
    pub(crate) fn settings_with(&self, more: &[&Server], user: &Credentials) -> ShardSettings {
        let endpoint = |server: &Server| {
            let endpoint: Endpoint = server.url().parse().unwrap();
            endpoint.with_credentials(user.clone())
        };
        let replicas = std::iter::once(&self.replica).chain(more.iter().copied());
        let replicas = replicas.map(endpoint).collect();
        let mut settings = ShardSettings::replicated(endpoint(&self.primary), replicas);
        settings.link = LinkLimits {
            connect: PATIENCE,
            proof: PATIENCE,
            heartbeat_answer: PATIENCE,
            seek: PATIENCE,
            ..LinkLimits::default()
        };
        settings
    }
}

impl Client {
    /// Opens a store that is connected to the primary and to the replicas that it reads from.
    pub(crate) async fn connect(settings: &ShardSettings, choice: RuntimeChoice) -> Self {
        let store = RedisShard::open(settings, Keys::new(PlainHash), choice);
        store.ready(PATIENCE).await.unwrap();
        let window = FixedWindow::new(1_000, Millis::new(WINDOW), Anchor::FirstRequest);
        let limit = Limit::new("core", Algorithm::FixedWindow(window.unwrap())).unwrap();
        let client = Self { store: store.with_deadline(PATIENCE), limit };
        for replica in 1..client.store.status().len() {
            client.reads_from(replica).await;
        }
        client
    }

    pub(crate) fn limit(&self) -> &Limit {
        &self.limit
    }

    pub(crate) async fn take(&self, at: Timestamp, units: u64) -> Result<Reading, BatcherError> {
        self.apply(at, Operation::Charge { cost: Cost::new(units).unwrap(), id: ChargeId(1) }).await
    }

    pub(crate) async fn peek(&self, at: Timestamp) -> Result<Reading, BatcherError> {
        self.apply(at, Operation::Peek { cost: Cost::ONE }).await
    }

    pub(crate) async fn apply(
        &self,
        at: Timestamp,
        operation: Operation,
    ) -> Result<Reading, BatcherError> {
        let charge = Charge { limit: &self.limit, subject: &Subject::default(), operation };
        Ok(self.store.apply_within(at, &[charge], PATIENCE).await?[0])
    }

    /// Reads the used units with a peek.
    pub(crate) async fn used(&self) -> u64 {
        self.peek(NOW).await.unwrap().used
    }

    pub(crate) fn circuit_state(&self, batcher: usize) -> CircuitState {
        self.store.status()[batcher].circuit_state
    }

    /// Waits until the replica with this number, counted from 1, is in service.
    pub(crate) async fn reads_from(&self, replica: usize) {
        until(|| self.circuit_state(replica) == CircuitState::Closed).await;
    }

    /// Waits until the only replica is out of service with an error that contains `reason`.
    pub(crate) async fn leaves_the_replica(&self, reason: &str) {
        let is_told = |error: &LinkError| error.to_string().contains(reason);
        until(|| {
            let status = &self.store.status()[1];
            status.circuit_state == CircuitState::Open
                && status.last_error.as_ref().is_some_and(is_told)
        })
        .await;
    }
}

impl Server {
    /// Returns the section `section` of the server's `INFO`.
    pub(crate) async fn info(&self, section: &str) -> String {
        let mut connection = self.connect().await;
        let info = redis::cmd("INFO").arg(section).query_async(&mut connection).await;
        info.expect("statistics")
    }

    /// Returns how often the server executed each command since [`Self::forget_commands`].
    pub(crate) async fn commands(&self) -> BTreeMap<String, u64> {
        let info = self.info("commandstats").await;
        // A line looks like this:
        // `cmdstat_ping:calls=1,usec=2,usec_per_call=2.00,rejected_calls=0`.
        let count = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let (calls, _) = rest.split_once(',')?;
            Some((name.to_owned(), calls.parse().ok()?))
        };
        info.lines().filter_map(count).collect()
    }

    /// Returns, for each command that runs the step, how often the server executed the command.
    pub(crate) async fn steps(&self) -> BTreeMap<String, u64> {
        let mut commands = self.commands().await;
        commands.retain(|name, _| STEPS.contains(&&**name));
        commands
    }

    pub(crate) async fn forget_commands(&self) {
        self.execute(&["CONFIG", "RESETSTAT"]).await;
    }
}
