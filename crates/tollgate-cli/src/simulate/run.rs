//! Runs a simulation: evaluates every entry of the logs with one or two policies.

use std::fmt;

use tollgate::HashKey;
use tollgate::model::{Policy, StoreError};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;

use super::log::{Input, Log, LogError, Options};
use super::outcome::{Outcome, Simulation};
use super::progress::{Progress, ProgressTarget};
use super::request::Request;
use super::trial::PolicyRun;

/// A policy to evaluate, and its name in reports.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The name of the policy in reports.
    pub(crate) name: String,
    /// The policy to evaluate.
    pub(crate) policy: Policy,
    /// The bounds of the candidate's memory store.
    pub(crate) bounds: Bounds,
}

/// The input of a simulation.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The logs to read.
    pub(crate) inputs: Vec<Input>,
    /// The settings for reading the logs.
    pub(crate) options: Options,
    /// The policy to evaluate.
    pub(crate) policy: Candidate,
    /// Another policy to compare with, or `None` to evaluate only one policy.
    pub(crate) compare: Option<Candidate>,
    /// The number of subjects to show.
    pub(crate) top: usize,
    /// Whether progress is shown.
    pub(crate) watcher: ProgressTarget,
}

/// Evaluates every entry of the logs with the policies, each with its own memory store, at the
/// log's time.
///
/// # Errors
/// [`Error`] if a log cannot be read or a store fails.
pub(crate) async fn run(plan: Plan) -> Result<Simulation, Error> {
    let mut log = Log::open(&plan.inputs, &plan.options)?;
    // Both policies hash credentials with the same key, so a subject has the same name in both
    // results.
    let key = HashKey::random();
    let trial = |Candidate { name, policy, bounds }: Candidate| {
        (name, PolicyRun::new(policy, || Memory::new(bounds), &key))
    };
    let mut first = trial(plan.policy);
    let mut second = plan.compare.map(trial);
    let mut progress = Progress::of(&log, plan.watcher);
    let mut period: Option<(u64, u64)> = None;
    while let Some(entry) = log.next_entry()? {
        period = Some((period.map_or(entry.time, |(from, _)| from), entry.time));
        let request = Request::new(&entry, &plan.options.fields);
        first.1.take(&request).await?;
        if let Some((_, trial)) = &mut second {
            trial.take(&request).await?;
        }
        progress.entry(&log);
    }
    progress.finish();
    let outcome = |(name, trial): (String, PolicyRun<Memory>)| Outcome::new(name, &trial, plan.top);
    let logs = plan.inputs.iter().map(ToString::to_string).collect();
    Ok(Simulation::new(logs, &log, period, outcome(first), second.map(outcome)))
}

/// The reason why a simulation failed.
#[derive(Debug)]
pub(crate) enum Error {
    /// A log cannot be read.
    Log(LogError),
    /// The store did not answer a refund.
    Store(StoreError),
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::Store(error) => write!(f, "cannot refund a charge: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Log(error) => error.source(),
            Self::Store(error) => Some(error),
        }
    }
}
