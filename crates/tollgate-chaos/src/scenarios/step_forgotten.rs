//! The server loses the step repeatedly.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;

const PERIOD: Duration = Duration::from_millis(10);

/// In 1,000 decisions: how often the step is given again at the least, and how many of them nodes
/// make alone at the most, because giving it takes longer than the deadline.
const GIVEN: u64 = 2;
const ALONE_MAX: u64 = 100;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let (before, loads) = (trial.load.decided(), server.ran(&LOADS).await?);
    let ends = Instant::now() + 2 * site.part();
    while Instant::now() < ends {
        server.tell(&["SCRIPT", "FLUSH"]).await?;
        // Servers before 7.0 do not support functions.
        let _ = server.tell(&["FUNCTION", "FLUSH"]).await;
        sleep(PERIOD).await;
    }
    let given = server.ran(&LOADS).await? - loads;
    let decided = trial.load.decided().all - before.all;
    let figures = vec![
        Figure::share_seen("times the step was given again", given, decided, GIVEN),
        trial.alone_at_most(before, ALONE_MAX),
    ];
    let did = "had the server forget the step every 10 ms";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}

/// The commands that load the step.
const LOADS: [&str; 2] = ["function|load", "script|load"];
