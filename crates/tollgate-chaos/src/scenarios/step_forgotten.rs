//! The server loses the step repeatedly.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;

const PERIOD: Duration = Duration::from_millis(10);

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], PATIENT).await?;
    let (before, loads) = (trial.load.alone(), server.ran(&LOADS).await?);
    let ends = Instant::now() + 2 * site.part();
    while Instant::now() < ends {
        server.tell(&["SCRIPT", "FLUSH"]).await?;
        // Servers before 7.0 do not support functions.
        let _ = server.tell(&["FUNCTION", "FLUSH"]).await;
        sleep(PERIOD).await;
    }
    let figures = vec![
        Figure::fault_seen("times the step was given again", server.ran(&LOADS).await? - loads),
        Figure::at_most("decisions by nodes alone", trial.load.alone() - before, 0),
    ];
    let did = "had the server forget the step every 10 ms";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}

/// The commands that load the step.
const LOADS: [&str; 2] = ["function|load", "script|load"];
