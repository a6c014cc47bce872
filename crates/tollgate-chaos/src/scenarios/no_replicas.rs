//! The primary rejects writes, because its replica lags behind.

use super::*;

/// The server settings that bound the loss in a failover, as described in `docs/redis.md`.
const GUARDED: [&str; 4] = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"];

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let (primary, replica) = (site.server(&GUARDED).await?, site.server(&[]).await?);
    replica.follow(&primary).await?;
    let pair = Pair { primary, replica };
    let trial = Trial::begin(site, &[pair.words()], DEADLINE).await?;
    let refused =
        async || pair.primary.info_field("errorstats", "errorstat_NOREPLICAS:count=").await;
    // The primary may have refused calls before its replica was in sync. Those refusals are not
    // counted.
    let earlier = refused().await?;
    pair.replica.freeze()?;
    until("that the primary takes no writes", async || Ok(refused().await? > earlier)).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    trial.falls_back(before).await?;
    trial.part().await;
    let fallback = trial.fallback_since(since, MOST_FALLBACK);
    pair.replica.thaw()?;
    trial.recovers().await?;
    let calls = refused().await? - earlier;
    let figures =
        vec![Figure::fault_seen("calls that the primary refused for it", calls), fallback];
    let did = "froze the replica without which the primary takes no writes, and let it go on";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
