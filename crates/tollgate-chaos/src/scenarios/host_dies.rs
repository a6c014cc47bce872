//! The machine of a primary dies, and data in transit to the replica is lost.

use std::time::Duration;

use super::*;

/// The delay of the replication stream to the replica.
const WAY: Duration = Duration::from_millis(20);

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let (mut primary, replica) = (site.server(&[]).await?, site.server(&[]).await?);
    let between = Network::before(primary.port()).await?;
    replica.follow_at(between.port()).await?;
    let words = format!("{{ primary: \"{}\", replicas: \"{}\" }}", primary.url(), replica.url());
    let trial = Trial::begin(site, &[words], DEADLINE).await?;
    between.replies(LinkMode::Slow(WAY));
    trial.part().await;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    let (lost, late) = {
        // A window is lost with all of its charges if the command that created the window was in
        // transit.
        let recorder = trial.nodes.recorder();
        let _cutting = recorder.begin_cut();
        let mark = trial.mark();
        primary.is_followed().await?;
        // One chunk of the stream may still be in transit, and arrive at the replica.
        let late = between.fault_seen() + 1;
        between.replies(LinkMode::Lost);
        until("that something is lost on its way", async || Ok(between.fault_seen() > late))
            .await?;
        primary.kill()?;
        let lost = trial.max_lost_units(mark);
        trial.falls_back(before).await?;
        replica.promote().await?;
        trial.charges(&replica.url()).await?;
        (lost, late)
    };
    let figures = vec![
        Figure::fault_seen("parts of the stream lost on their way", between.fault_seen() - late),
        trial.fallback_since(since, SOME_FALLBACK),
    ];
    let did = "lost what was on its way to the replica, killed the primary, and promoted";
    Ok(trial.end(ScenarioReport { did, figures, lost, losses: 0, held_back: 0 }).await)
}
