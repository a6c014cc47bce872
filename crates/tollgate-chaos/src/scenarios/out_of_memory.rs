//! The server has no memory for new keys.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&["--maxmemory-policy", "noeviction"]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let (before, since) = (trial.load.alone(), trial.load.decided());
    server.tell(&["CONFIG", "SET", "maxmemory", "1"]).await?;
    trial.stands_in(before).await?;
    trial.part().await;
    let alone = trial.alone_since(since, SOME_ALONE);
    server.tell(&["CONFIG", "SET", "maxmemory", "0"]).await?;
    trial.recovers().await?;
    let figures = vec![alone];
    let did = "took the server's memory away, and gave it back";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
