//! The network loses everything, and no socket tells of it.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let network = Network::before(server.port()).await?;
    let trial = Trial::begin(site, &[primary(&network.url())], DEADLINE).await?;
    let before = trial.load.alone();
    network.requests(Passage::Lost);
    trial.stands_in(before).await?;
    trial.part().await;
    let alone = trial.load.alone() - before;
    network.requests(Passage::Open);
    trial.recovers().await?;
    let figures = vec![
        Figure::bites("requests lost", network.bites()),
        Figure::bites("decisions by nodes alone", alone),
    ];
    let did = "lost every request with all sockets open, and delivered again";
    Ok(trial.end(Told { did, figures, ..Told::default() }).await)
}
