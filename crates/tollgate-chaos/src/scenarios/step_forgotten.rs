//! The server loses the step (the script or function that decides) repeatedly.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;

const PERIOD: Duration = Duration::from_millis(10);

/// The least number of times that nodes must load the step again in 1,000 decisions, to show that
/// the fault had an effect.
const LOADED: u64 = 2;
/// The most decisions in 1,000 that nodes may make without the store at the default deadline, on a
/// machine without other work. A busy machine may need more time to load the step, so a quick run
/// (a test) does not check the number. With a long deadline, no node decides without the store on
/// any machine.
const MAX_FALLBACK: u64 = 50;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let what = "decisions by nodes alone, with a patient deadline";
    let patient = forget(site, LONG_DEADLINE, what, 0).await?;
    if patient.result() != ScenarioResult::Passed {
        return Ok(patient);
    }
    let mut finding = forget(site, DEADLINE, "decisions by nodes alone", MAX_FALLBACK).await?;
    finding.figures.extend(patient.figures.into_iter().filter(|figure| figure.what == what));
    Ok(finding)
}

/// Runs nodes with this `deadline` while the server loses the step. The finding has a figure named
/// `what`: the number of decisions that nodes make without the store. At most `fallback` in 1,000
/// decisions may be made without the store.
async fn forget(
    site: &Site,
    deadline: Duration,
    what: &'static str,
    fallback: u64,
) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], deadline).await?;
    let (before, loads) = (trial.load.decided(), server.ran(&LOADS).await?);
    let ends = Instant::now() + 2 * site.part();
    while Instant::now() < ends {
        server.send(&["SCRIPT", "FLUSH"]).await?;
        // Servers before 7.0 do not support functions.
        let _ = server.send(&["FUNCTION", "FLUSH"]).await;
        sleep(PERIOD).await;
    }
    let loaded = server.ran(&LOADS).await? - loads;
    let decided = trial.load.decided().all - before.all;
    let figures = vec![
        Figure::share_seen("times the step was loaded again", loaded, decided, LOADED),
        trial.fallback_at_most(what, before, fallback),
    ];
    let did = "had the server forget the step every 10 ms";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}

/// The commands that load the step.
const LOADS: [&str; 2] = ["function|load", "script|load"];
