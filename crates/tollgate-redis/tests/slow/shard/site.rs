//! A server, and a store on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_conformance::PlainHash;
use tollgate_conformance::history::{Allowance, Outcome, Recorder};
use tollgate_core::algo::FixedWindow;
use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::{
    Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Reading, Subject, Value,
};
use tollgate_redis::{
    BatcherError, CircuitState, Endpoint, Keys, LinkLimits, RedisShard, RuntimeChoice,
    ShardSettings, StepError, StepRuntime, Tls,
};

use crate::kit::{Certificates, Server, Version, free_port, module_file};
use crate::shard::{NOW, PATIENCE, until};

/// How the step runs, and how the client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Function,
    Script,
    /// A function, called over mutual TLS.
    Tls,
    /// The module, with the keys of functions and scripts.
    Module,
    /// The module, with tables.
    Tables,
}

/// A server and its client.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) client: Arc<Client>,
    arguments: Vec<String>,
    _certificates: Certificates,
}

/// A store, and a limit to charge.
pub(crate) struct Client {
    pub(crate) store: RedisShard,
    limit: Limit,
    answered: AtomicU64,
    pub(crate) recorder: Recorder,
}

impl Way {
    /// Returns the values that `version` supports, without TLS.
    pub(crate) fn of(version: Version) -> &'static [Self] {
        const ALL: &[Way] = &[Way::Function, Way::Script, Way::Module, Way::Tables];
        if version.has_functions() { ALL } else { &ALL[1..] }
    }

    pub(crate) fn choice(self) -> RuntimeChoice {
        match self {
            Self::Function | Self::Tls | Self::Module => RuntimeChoice::Best,
            Self::Script => RuntimeChoice::Script,
            Self::Tables => RuntimeChoice::Tables,
        }
    }

    /// Returns how the step runs in the server.
    pub(crate) fn runs(self) -> StepRuntime {
        match self {
            Self::Function | Self::Tls => StepRuntime::Function,
            Self::Script => StepRuntime::Script,
            Self::Module => StepRuntime::Module,
            Self::Tables => StepRuntime::Tables,
        }
    }

    /// Returns the arguments with which a server supports this value.
    pub(crate) fn arguments(self) -> Vec<String> {
        match self {
            Self::Function | Self::Script | Self::Tls => Vec::new(),
            Self::Module | Self::Tables => vec!["--loadmodule".to_owned(), module_file()],
        }
    }

    /// Starts a server that supports this value, with additional arguments.
    pub(crate) async fn start(self, version: Version, arguments: &[&str]) -> Server {
        let own = self.arguments();
        Server::start_version(version, &[&words(&own), arguments].concat()).await
    }
}

impl Site {
    /// Starts the server of the system's package, and a store with a limit of `quota` per hour.
    pub(crate) async fn start(way: Way, quota: u64) -> Self {
        let certificates = Certificates::new();
        let tls_port = free_port();
        let arguments = match way {
            Way::Tls => certificates.arguments(tls_port),
            way => way.arguments(),
        };
        let server = Server::start_with(&words(&arguments)).await;
        let endpoint: Endpoint = match way {
            Way::Function | Way::Script | Way::Module | Way::Tables => {
                server.url().parse().unwrap()
            }
            Way::Tls => {
                let endpoint: Endpoint = format!("rediss://127.0.0.1:{tls_port}").parse().unwrap();
                let path = |name| certificates.path(name);
                let client = Some((path("client.pem"), path("client.key")));
                let authorities = Some(path("ca.pem"));
                endpoint.with_tls(Tls { authorities, client, server_name: None }).unwrap()
            }
        };
        let client = Client::new(&patient(endpoint), way, quota).await;
        Self { server, client, arguments, _certificates: certificates }
    }

    /// Starts the killed server again and waits until the store is connected to it.
    pub(crate) async fn start_again(&mut self) {
        self.server.start_again(&words(&self.arguments));
        self.client.store.ready(PATIENCE).await.unwrap();
    }
}

impl Client {
    /// Opens a store with a limit of `quota` per hour, and waits until the store is connected.
    pub(crate) async fn new(settings: &ShardSettings, way: Way, quota: u64) -> Arc<Self> {
        let store = RedisShard::open(settings, Keys::new(PlainHash), way.choice());
        store.ready(PATIENCE).await.unwrap();
        Self::on(store, quota)
    }

    /// Creates a client of an existing store, with a limit of `quota` per hour.
    pub(crate) fn on(store: RedisShard, quota: u64) -> Arc<Self> {
        let window = FixedWindow::new(quota, Millis::new(3_600_000), Anchor::FirstRequest);
        let limit = Limit::new("core", Algorithm::FixedWindow(window.unwrap())).unwrap();
        Arc::new(Self { store, limit, answered: AtomicU64::new(0), recorder: Recorder::default() })
    }

    /// Charges `units` for the subject with this number. Zero units only read the status.
    pub(crate) async fn take(&self, subject: u64, units: u64) -> Result<Reading, BatcherError> {
        self.take_within(subject, units, PATIENCE).await
    }

    /// Charges like [`Self::take`], with a time limit for this call.
    pub(crate) async fn take_within(
        &self,
        subject: u64,
        units: u64,
        within: Duration,
    ) -> Result<Reading, BatcherError> {
        let operation = Operation::Charge { cost: Cost::new(units).unwrap(), id: ChargeId(1) };
        self.apply(subject, operation, within).await
    }

    pub(crate) async fn apply(
        &self,
        subject: u64,
        operation: Operation,
        within: Duration,
    ) -> Result<Reading, BatcherError> {
        let subject = numbered(subject);
        let charge = Charge { limit: &self.limit, subject: &subject, operation };
        let issued = self.recorder.issue(NOW, &[charge]);
        let result = self.store.apply_within(NOW, &[charge], within).await;
        issued.ended(match &result {
            Ok(readings) => Outcome::Answered(readings.clone()),
            Err(BatcherError::Overloaded | BatcherError::Unavailable) => Outcome::NotCarriedOut,
            Err(BatcherError::Step(StepError::Full | StepError::Late)) => Outcome::NotCarriedOut,
            Err(_) => Outcome::Unknown,
        });
        self.answered.fetch_add(1, Ordering::SeqCst);
        Ok(result?[0])
    }

    /// Returns the number of answered calls.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::SeqCst)
    }

    /// Checks the history of all calls of the client.
    pub(crate) fn assert_sound(&self) {
        self.assert_sound_but_for(0);
    }

    /// Checks like [`Self::assert_sound`]. Tolerates up to `lost` units that were counted and then
    /// lost.
    pub(crate) fn assert_sound_but_for(&self, lost: u64) {
        let allowance = Allowance { lost, ..Allowance::default() };
        self.recorder.history().check(allowance).assert_sound();
    }

    /// Returns the name of the key of the subject with this number.
    pub(crate) fn key(&self, subject: u64) -> Vec<u8> {
        Keys::new(PlainHash).name(&self.limit, &numbered(subject)).to_vec()
    }

    pub(crate) fn circuit_state(&self) -> CircuitState {
        self.store.status()[0].circuit_state
    }

    /// Waits until the store is connected to `server`.
    pub(crate) async fn is_on(&self, server: &Server) {
        until(|| self.store.status()[0].address == Some(server.url())).await;
    }
}

/// Returns settings with long timeouts, so a machine that is busy with other tests does not look
/// like a fault.
pub(crate) fn patient(primary: Endpoint) -> ShardSettings {
    let mut settings = ShardSettings::new(primary);
    settings.link = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        seek: PATIENCE,
        ..LinkLimits::default()
    };
    settings
}

fn numbered(subject: u64) -> Subject {
    Subject::new([("number", Value::Clear(&subject.to_be_bytes()))], &PlainHash)
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// Defines a test for every [`Way`] and each of these async functions.
macro_rules! in_every_way {
    ($($test:ident)*) => { $(
        mod $test {
            use crate::shard::Way;

            crate::shard::in_every_way_of_keys! { @tests $test }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_the_module_with_tables() {
                super::$test(Way::Tables).await;
            }
        }
    )* };
}
pub(crate) use in_every_way;

/// Defines a test for each of these async functions and every [`Way`] in which each subject has a
/// key of its own.
macro_rules! in_every_way_of_keys {
    (@tests $test:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn as_a_function() {
            super::$test(Way::Function).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn as_a_script() {
            super::$test(Way::Script).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn over_tls() {
            super::$test(Way::Tls).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn in_the_module() {
            super::$test(Way::Module).await;
        }
    };
    ($($test:ident)*) => { $(
        mod $test {
            use crate::shard::Way;

            crate::shard::in_every_way_of_keys! { @tests $test }
        }
    )* };
}
pub(crate) use in_every_way_of_keys;
