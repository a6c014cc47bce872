//! The network drops all bytes, and all sockets stay open.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let network = Network::before(server.port()).await?;
    let trial = Trial::begin(site, &[primary(&network.url())], DEADLINE).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    network.requests(LinkMode::Lost);
    trial.falls_back(before).await?;
    trial.part().await;
    let fallback = trial.fallback_since(since, MOST_FALLBACK);
    network.requests(LinkMode::Open);
    trial.recovers().await?;
    let figures = vec![Figure::fault_seen("requests lost", network.fault_seen()), fallback];
    let did = "lost every request with all sockets open, and delivered again";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
