//! `POST /v1/simulate`: the decisions that a policy would have made on the requests of an access
//! log, for administrators.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use super::app::App;
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;
use super::wire::given;

/// The most bytes of a simulation request: a log of 8 MiB in base64, and a policy.
pub const MAX_SIMULATION_BYTES: usize = 12 << 20;

/// The longest time from the head of such a request to its last byte.
pub(super) const SIMULATION_BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of simulations that run at once. Each occupies a processor, which decisions cannot
/// use during that time.
const AT_ONCE: usize = 1;

/// A function that evaluates the current policy, and optionally another one, on the requests of an
/// access log.
#[derive(Clone)]
pub struct Simulate {
    simulate: Arc<Run>,
    permits: Arc<Semaphore>,
}

/// The pattern of base64 that decodes without leftover characters or bits.
const BASE64: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

type Run = dyn Fn(Bytes, Option<&str>) -> Result<Value, String> + Send + Sync;

/// A log, and a policy to evaluate on it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SimulateRequest<'a> {
    /// The log in base64 (RFC 4648), plain or compressed with gzip. Its format is common, combined,
    /// or one JSON object per line.
    #[serde(borrow)]
    #[schemars(regex(pattern = BASE64))]
    log: Cow<'a, str>,
    /// A policy file to compare with the current policy.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    policy: Option<String>,
}

impl Simulate {
    /// Calls `simulate` with the bytes of a log and the text of another policy. It may take long,
    /// and has to limit its own time and memory.
    pub fn new(
        simulate: impl Fn(Bytes, Option<&str>) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self { simulate: Arc::new(simulate), permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl fmt::Debug for Simulate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulate")
    }
}

/// A permit for one simulation. It is acquired before the log is read, so only one log at a time is
/// in memory.
pub(super) struct SimulationPermit {
    simulate: Arc<Run>,
    permit: OwnedSemaphorePermit,
}

impl<S> App<S> {
    /// Acquires the permit, if this listener simulates and no other simulation runs.
    pub(super) fn simulation(&self) -> Result<SimulationPermit, Problem> {
        let Some(Simulate { simulate, permits }) = self.options.simulate.clone() else {
            return Err(Problem::new(Kind::NotFound, "this listener does not support simulations"));
        };
        let busy = "another simulation is running on this node: try again later";
        let permit = permits.try_acquire_owned().map_err(|_| Problem::new(Kind::Busy, busy))?;
        Ok(SimulationPermit { simulate, permit })
    }
}

impl SimulationPermit {
    /// Runs the simulation and returns its report.
    pub(super) async fn run(self, body: &[u8]) -> Answer {
        let SimulateRequest { log, policy } = json::read(body)?;
        let log = STANDARD.decode(log.as_bytes()).map_err(|error| {
            Problem::new(Kind::InvalidRequest, format!("the log is not valid base64: {error}"))
                .at("/log")
        })?;
        let Self { simulate, permit } = self;
        let run = move || {
            let message = simulate(log.into(), policy.as_deref());
            // The simulation continues if its client disconnects, and keeps its permit until its
            // end.
            drop(permit);
            message
        };
        match spawn_blocking(run).await {
            Ok(Ok(message)) => Ok(json::write(&message)?),
            Ok(Err(reason)) => Err(Problem::new(Kind::NotSimulated, reason)),
            Err(error) => Err(Problem::new(Kind::Internal, error.to_string())),
        }
    }
}
