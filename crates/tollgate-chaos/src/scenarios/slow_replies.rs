//! Every reply is later than the deadline of a decision.

use std::time::Duration;

use super::*;

/// The delay of a reply: twice the deadline.
const SLOW: Duration = Duration::from_millis(30);

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let network = Network::before(server.port()).await?;
    let trial = Trial::begin(site, &[primary(&network.url())], DEADLINE).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    network.replies(LinkMode::Slow(SLOW));
    trial.falls_back(before).await?;
    trial.part().await;
    let fallback = trial.fallback_since(since, MOST_FALLBACK);
    network.replies(LinkMode::Open);
    trial.recovers().await?;
    let figures = vec![Figure::fault_seen("late replies", network.fault_seen()), fallback];
    let did = "made every reply 30 ms late, and let replies pass again";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
