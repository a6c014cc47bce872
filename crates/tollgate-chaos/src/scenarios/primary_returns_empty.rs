//! A failover by hand, after which the old primary is started again without data.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let mut pair = site.pair().await?;
    let words = pair.words();
    let trial = Trial::begin(site, std::slice::from_ref(&words), DEADLINE).await?;
    let (mark, before) = (trial.mark(), trial.load.fallback());
    pair.primary.is_followed().await?;
    pair.primary.kill()?;
    let lost = trial.max_lost_units(mark);
    trial.falls_back(before).await?;
    pair.replica.promote().await?;
    let new = pair.replica.url();
    trial.charges(&new).await?;
    pair.primary.start_again(&[])?;
    sees_primaries(&trial.nodes, 2).await?;
    trial.part().await;
    let elsewhere = u64::from(!trial.nodes.charges(&new)) + fleets_elsewhere(&words, &new).await?;
    let figures = vec![
        Figure::fault_seen("primaries beside the new one", 1),
        Figure::at_most("fleets that charge the empty server", elsewhere, 0),
    ];
    let did = "killed a primary, promoted its replica, and started the old one with nothing in it";
    Ok(trial.end(ScenarioReport { did, figures, lost, losses: 0, held_back: 0 }).await)
}
