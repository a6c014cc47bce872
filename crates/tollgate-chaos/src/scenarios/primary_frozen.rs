//! A primary freezes: its sockets stay open, and the primary does not answer.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let (before, since) = (trial.load.alone(), trial.load.decided());
    server.freeze()?;
    trial.stands_in(before).await?;
    trial.part().await;
    let alone = trial.alone_since(since, MOST_ALONE);
    server.thaw()?;
    trial.recovers().await?;
    let figures = vec![alone];
    let did = "froze a primary, and let it go on";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
