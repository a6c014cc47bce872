//! A primary freezes: its sockets stay open, and the primary does not answer.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    server.freeze()?;
    trial.falls_back(before).await?;
    trial.part().await;
    let fallback = trial.fallback_since(since, MOST_FALLBACK);
    server.thaw()?;
    trial.recovers().await?;
    let figures = vec![fallback];
    let did = "froze a primary, and let it go on";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
