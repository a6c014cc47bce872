//! The primary becomes a replica of its successor, with connections open.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let pair = site.pair().await?;
    let trial = Trial::begin(site, &[pair.words()], DEADLINE).await?;
    let mark = trial.mark();
    pair.primary.is_followed().await?;
    let was_charged = u64::from(trial.nodes.charges(&pair.primary.url()));
    pair.replica.promote().await?;
    let new = pair.replica.port().to_string();
    pair.primary.send(&["REPLICAOF", "127.0.0.1", &new]).await?;
    let lost = trial.max_lost_units(mark);
    trial.charges(&pair.replica.url()).await?;
    trial.part().await;
    let figures = vec![Figure::fault_seen("primaries replaced", was_charged)];
    let did = "promoted a replica, and had the old primary follow it";
    Ok(trial.end(ScenarioReport { did, figures, lost, losses: 0, held_back: 0 }).await)
}
