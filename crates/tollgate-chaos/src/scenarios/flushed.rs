//! An operator deletes every key of the server.

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    {
        let recorder = trial.nodes.recorder();
        let _losing = recorder.begin_loss();
        server.send(&["FLUSHALL"]).await?;
    }
    let reported = async || Ok(trial.nodes.windows_lost() > 0);
    until("that all nodes report lost windows", reported).await?;
    trial.part().await;
    let figures =
        vec![Figure::fault_seen("losses that each node reported", trial.nodes.windows_lost())];
    let did = "deleted every key of the server";
    Ok(trial.end(ScenarioReport { did, figures, lost: 0, losses: 1, held_back: 0 }).await)
}
