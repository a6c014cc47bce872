//! The server has no memory for new keys.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&["--maxmemory-policy", "noeviction"]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    server.send(&["CONFIG", "SET", "maxmemory", "1"]).await?;
    trial.falls_back(before).await?;
    trial.part().await;
    let fallback = trial.fallback_since(since, SOME_FALLBACK);
    server.send(&["CONFIG", "SET", "maxmemory", "0"]).await?;
    trial.recovers().await?;
    let figures = vec![fallback];
    let did = "took the server's memory away, and gave it back";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
