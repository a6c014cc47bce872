//! Two servers that the nodes treat as a primary and its replica, although neither server
//! replicates the other.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let pair = Pair { primary: site.server(&[]).await?, replica: site.server(&[]).await? };
    let (words, first) = (pair.words(), pair.primary.url());
    let trial = Trial::begin(site, std::slice::from_ref(&words), DEADLINE).await?;
    sees_primaries(&trial.nodes, 2).await?;
    trial.part().await;
    let elsewhere =
        u64::from(!trial.nodes.charges(&first)) + fleets_elsewhere(&words, &first).await?;
    let figures = vec![
        Figure::fault_seen("primaries beside the configured one", 1),
        Figure::at_most("fleets that charge the other server", elsewhere, 0),
    ];
    let did = "ran nodes on a primary and a replica that does not follow it";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
