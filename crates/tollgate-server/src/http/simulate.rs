//! `POST /v1/simulate`: the decisions that a policy would have made on the requests of an access
//! log or on this node's own requests, for administrators.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use super::app::App;
use super::callbacks::{Run, Simulate};
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;
use super::wire::given;

/// The most bytes of a simulation request: a log of 8 MiB in base64, and a policy.
pub const MAX_SIMULATION_BYTES: usize = 12 << 20;

/// The longest time from the head of a simulation request to its last byte.
pub(super) const SIMULATION_BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The regular expression of base64 that decodes without leftover characters or bits.
const BASE64: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// A log, and a policy to evaluate on it. Without a log, the sample of this node's requests of the
/// last hour is used.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SimulateRequest<'a> {
    /// The log in base64 (RFC 4648), plain or compressed with gzip. Its format is common, combined,
    /// or one JSON object per line.
    #[serde(default, borrow, deserialize_with = "borrowed")]
    #[schemars(with = "String", regex(pattern = BASE64))]
    log: Option<Cow<'a, str>>,
    /// A policy file to compare with the current policy.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    policy: Option<String>,
}

/// Reads a text without a copy if it has no escapes. `null` is an error.
fn borrowed<'de: 'a, 'a, D: Deserializer<'de>>(input: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Text::deserialize(input).map(|Text(text)| Some(text))
}

/// The permit to run a simulation. It is acquired before the log is read, so only one log at a time
/// is in memory.
pub(super) struct SimulationPermit {
    simulate: Arc<Run>,
    permit: OwnedSemaphorePermit,
}

impl<S> App<S> {
    /// Acquires the permit. Returns a problem if this listener offers no simulations, or if another
    /// simulation is running.
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
        let log = log.map(|log| STANDARD.decode(log.as_bytes())).transpose().map_err(|error| {
            Problem::new(Kind::InvalidRequest, format!("the log is not valid base64: {error}"))
                .at("/log")
        })?;
        let Self { simulate, permit } = self;
        let run = move || {
            let message = simulate(log.map(Into::into), policy.as_deref());
            // If the client disconnects, the simulation continues and keeps its permit until its
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
