//! The runner, which runs scenarios one after the other.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::error::ChaosError;
use super::finding::{Finding, ScenarioResult};
use super::scenarios::Scenario;
use super::site::Site;

/// The time limit of a scenario.
const WITHIN: Duration = Duration::from_secs(180);

/// The most runs of a scenario until its fault has an effect. On a busy machine the fault may come
/// too early or too late to have an effect. Such a run proves nothing.
const TRIES: u32 = 3;

/// A scenario and its outcome.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The scenario.
    pub(crate) scenario: Scenario,
    /// The finding, or the reason why the scenario could not be run.
    pub(crate) found: Result<Finding, ChaosError>,
    /// The duration of the scenario.
    pub(crate) took: Duration,
}

/// Runs `scenarios` at `site`, and passes each outcome to `on_outcome` when its scenario ends.
pub(crate) async fn run(
    site: &Site,
    scenarios: &[Scenario],
    mut on_outcome: impl FnMut(&Outcome),
) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(scenarios.len());
    for scenario in scenarios {
        let started = Instant::now();
        let mut found = try_once(*scenario, site).await;
        for _ in 1..TRIES {
            let shows_nothing =
                |finding: &Finding| matches!(finding.result(), ScenarioResult::NoEffect);
            if !found.as_ref().is_ok_and(shows_nothing) {
                break;
            }
            found = try_once(*scenario, site).await;
        }
        let outcome = Outcome { scenario: *scenario, found, took: started.elapsed() };
        on_outcome(&outcome);
        outcomes.push(outcome);
    }
    outcomes
}

async fn try_once(scenario: Scenario, site: &Site) -> Result<Finding, ChaosError> {
    // The processes and tasks of a scenario end when its future is dropped.
    let late = ChaosError::WaitTimedOut("the end of the scenario", WITHIN);
    timeout(WITHIN, scenario.run(site)).await.unwrap_or(Err(late))
}

impl Outcome {
    /// Returns whether the scenario had an effect and all stated bounds held.
    pub(crate) fn is_held(&self) -> bool {
        matches!(&self.found, Ok(finding) if finding.result() == ScenarioResult::Passed)
    }
}
