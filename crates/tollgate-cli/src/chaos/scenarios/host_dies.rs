//! The machine of a primary dies: what it had sent to its replica and was on its way is lost.

use std::time::Duration;

use super::*;

/// How long the stream to the replica is on its way.
const WAY: Duration = Duration::from_millis(20);

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let (mut primary, replica) = (site.server(&[]).await?, site.server(&[]).await?);
    let between = Network::before(primary.port()).await?;
    replica.follow_at(between.port()).await?;
    let words = format!("{{ primary: \"{}\", replicas: \"{}\" }}", primary.url(), replica.url());
    let trial = Trial::begin(site, &[words], DEADLINE).await?;
    between.replies(Passage::Slow(WAY));
    trial.part().await;
    let before = trial.load.alone();
    let (lost, late) = {
        // A window that was opened on the way is lost with all that was charged to it.
        let recorder = trial.nodes.recorder();
        let _cutting = recorder.cutting();
        let mark = trial.mark();
        primary.is_followed().await?;
        // One part may be on its way still, and arrive.
        let late = between.bites() + 1;
        between.replies(Passage::Lost);
        until("that something is lost on its way", async || Ok(between.bites() > late)).await?;
        primary.kill()?;
        let lost = trial.lost_at_most(mark);
        trial.stands_in(before).await?;
        replica.promote().await?;
        trial.charges(&replica.url()).await?;
        (lost, late)
    };
    let figures = vec![
        Figure::bites("parts of the stream lost on their way", between.bites() - late),
        Figure::bites("decisions by nodes alone", trial.load.alone() - before),
    ];
    let did = "lost what was on its way to the replica, killed the primary, and promoted";
    Ok(trial.end(Told { did, figures, lost, losses: 0, held_back: 0 }).await)
}
