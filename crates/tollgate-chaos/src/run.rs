//! Scenarios one after the other, told as they end.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::error::ChaosError;
use super::finding::{Finding, ScenarioResult};
use super::scenarios::Scenario;
use super::site::Site;

/// The longest that a scenario takes, whatever happens to its servers.
const WITHIN: Duration = Duration::from_secs(180);

/// How often a scenario is run until its fault bites. On a busy machine it may miss the moment, and
/// then shows nothing: neither that the promise holds nor that it does not.
const TRIES: u32 = 3;

/// One scenario, and what came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Which one.
    pub(crate) scenario: Scenario,
    /// What it found, or why it could not be carried out.
    pub(crate) found: Result<Finding, ChaosError>,
    /// How long it took.
    pub(crate) took: Duration,
}

/// Runs `scenarios` at `site`, and tells each outcome when it is there.
pub(crate) async fn run(
    site: &Site,
    scenarios: &[Scenario],
    mut tell: impl FnMut(&Outcome),
) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(scenarios.len());
    for scenario in scenarios {
        let begun = Instant::now();
        let mut found = try_once(*scenario, site).await;
        for _ in 1..TRIES {
            let shows_nothing =
                |finding: &Finding| matches!(finding.result(), ScenarioResult::NoEffect);
            if !found.as_ref().is_ok_and(shows_nothing) {
                break;
            }
            found = try_once(*scenario, site).await;
        }
        let outcome = Outcome { scenario: *scenario, found, took: begun.elapsed() };
        tell(&outcome);
        outcomes.push(outcome);
    }
    outcomes
}

async fn try_once(scenario: Scenario, site: &Site) -> Result<Finding, ChaosError> {
    // Everything that a scenario started ends with its future.
    let late = ChaosError::NotHappened("the end of the scenario", WITHIN);
    timeout(WITHIN, scenario.run(site)).await.unwrap_or(Err(late))
}

impl Outcome {
    /// Whether its promise was shown to hold.
    pub(crate) fn is_held(&self) -> bool {
        matches!(&self.found, Ok(finding) if finding.result() == ScenarioResult::Passed)
    }
}
