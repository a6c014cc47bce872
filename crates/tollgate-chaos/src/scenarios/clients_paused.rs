//! A server accepts calls and answers only after their deadlines, so the nodes do not know whether
//! the calls were executed.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;

/// The time from the start of one pause to the start of the next. A pause is four deadlines long.
const PERIOD: Duration = Duration::from_millis(200);

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    let ends = Instant::now() + 2 * site.part();
    let mut pauses = 0;
    while Instant::now() < ends || trial.load.fallback() == before {
        server.send(&["CLIENT", "PAUSE", "60", "ALL"]).await?;
        pauses += 1;
        sleep(PERIOD).await;
    }
    let fallback = trial.fallback_since(since, SOME_FALLBACK);
    trial.recovers().await?;
    let figures = vec![Figure::fault_seen("pauses", pauses), fallback];
    let did = "paused the server for 60 ms again and again, with calls in it";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
