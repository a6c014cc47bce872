//! A primary dies under load, and its replica is promoted.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let mut pair = site.pair().await?;
    let trial = Trial::begin(site, &[pair.words()], DEADLINE).await?;
    let (mark, before) = (trial.mark(), trial.load.fallback());
    let since = trial.load.decided();
    pair.primary.is_followed().await?;
    pair.primary.kill()?;
    let lost = trial.max_lost_units(mark);
    trial.falls_back(before).await?;
    trial.part().await;
    let fallback = trial.fallback_since(since, MOST_FALLBACK);
    pair.replica.promote().await?;
    trial.charges(&pair.replica.url()).await?;
    let figures = vec![fallback];
    let did = "killed a primary, and promoted its replica";
    Ok(trial.end(ScenarioReport { did, figures, lost, losses: 0, held_back: 0 }).await)
}
