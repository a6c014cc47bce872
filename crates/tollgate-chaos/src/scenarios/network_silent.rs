//! The network drops all bytes, and all sockets stay open.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let network = Network::before(server.port()).await?;
    let trial = Trial::begin(site, &[primary(&network.url())], DEADLINE).await?;
    let (before, since) = (trial.load.alone(), trial.load.decided());
    network.requests(LinkMode::Lost);
    trial.stands_in(before).await?;
    trial.part().await;
    let alone = trial.alone_since(since, MOST_ALONE);
    network.requests(LinkMode::Open);
    trial.recovers().await?;
    let figures = vec![Figure::fault_seen("requests lost", network.fault_seen()), alone];
    let did = "lost every request with all sockets open, and delivered again";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
