//! `POST /v1/simulate`: what a policy would have done with the requests of an access log, for those
//! who run it.

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

/// The most bytes of a request with a log in it: a log of 8 MiB in base64, and a policy.
pub const MAX_SIMULATION_BYTES: usize = 12 << 20;

/// How long such a request may take from its head to its last byte.
pub(super) const SIMULATION_BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// How many simulations run at once: each has a processor to itself, which decisions lack then.
const AT_ONCE: usize = 1;

/// Puts the requests of an access log to the policy in force, and to another one if it is given.
#[derive(Clone)]
pub struct Simulate {
    simulate: Arc<Run>,
    places: Arc<Semaphore>,
}

/// What decodes: whole groups, and no bits beside the last byte's.
const BASE64: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

type Run = dyn Fn(Bytes, Option<&str>) -> Result<Value, String> + Send + Sync;

/// A log, and a policy to try on it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SimulateRequest<'a> {
    /// The log in base64 (RFC 4648), plain or compressed with gzip: common, combined or a JSON object a line.
    #[serde(borrow)]
    #[schemars(regex(pattern = BASE64))]
    log: Cow<'a, str>,
    /// A policy file to compare the one in force with.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    policy: Option<String>,
}

impl Simulate {
    /// As `simulate` does with the bytes of a log and the text of another policy. It may take its
    /// time, and bounds that and its memory.
    pub fn new(
        simulate: impl Fn(Bytes, Option<&str>) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self { simulate: Arc::new(simulate), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl fmt::Debug for Simulate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulate")
    }
}

/// A simulation's turn: it is taken before its log is read, so that one log at a time is held.
pub(super) struct SimulationPermit {
    simulate: Arc<Run>,
    place: OwnedSemaphorePermit,
}

impl<S> App<S> {
    /// Takes the turn, if this listener simulates and nobody else does.
    pub(super) fn simulation(&self) -> Result<SimulationPermit, Problem> {
        let Some(Simulate { simulate, places }) = self.options.simulate.clone() else {
            return Err(Problem::new(Kind::NotFound, "this listener simulates nothing"));
        };
        let busy = "another simulation runs on this node: ask again when it has ended";
        let place = places.try_acquire_owned().map_err(|_| Problem::new(Kind::Busy, busy))?;
        Ok(SimulationPermit { simulate, place })
    }
}

impl SimulationPermit {
    /// What came of it.
    pub(super) async fn run(self, body: &[u8]) -> Answer {
        let SimulateRequest { log, policy } = json::read(body)?;
        let log = STANDARD.decode(log.as_bytes()).map_err(|error| {
            Problem::new(Kind::InvalidRequest, format!("the log is no base64: {error}")).at("/log")
        })?;
        let Self { simulate, place } = self;
        let run = move || {
            let message = simulate(log.into(), policy.as_deref());
            // It runs on when its client goes away, and keeps its place for so long.
            drop(place);
            message
        };
        match spawn_blocking(run).await {
            Ok(Ok(message)) => Ok(json::write(&message)?),
            Ok(Err(reason)) => Err(Problem::new(Kind::NotSimulated, reason)),
            Err(error) => Err(Problem::new(Kind::Internal, error.to_string())),
        }
    }
}
