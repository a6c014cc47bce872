//! A primary dies under load, and its replica is promoted.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let mut pair = site.pair().await?;
    let trial = Trial::begin(site, &[pair.words()], DEADLINE).await?;
    let (mark, before) = (trial.mark(), trial.load.alone());
    let since = trial.load.decided();
    pair.primary.is_followed().await?;
    pair.primary.kill()?;
    let lost = trial.max_lost_units(mark);
    trial.stands_in(before).await?;
    trial.part().await;
    let alone = trial.alone_since(since, MOST_ALONE);
    pair.replica.promote().await?;
    trial.charges(&pair.replica.url()).await?;
    let figures = vec![alone];
    let did = "killed a primary, and promoted its replica";
    Ok(trial.end(ScenarioReport { did, figures, lost, losses: 0, held_back: 0 }).await)
}
