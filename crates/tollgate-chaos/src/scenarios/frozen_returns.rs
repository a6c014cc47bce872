//! A frozen primary returns after its replica was promoted. The old primary still reports the role
//! of a primary.

use tollgate_redis::LinkLimits;

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let pair = site.pair().await?;
    let trial = Trial::begin(site, &[pair.words()], DEADLINE).await?;
    let (mark, before) = (trial.mark(), trial.load.fallback());
    pair.primary.is_followed().await?;
    pair.primary.freeze()?;
    let lost = trial.max_lost_units(mark);
    trial.falls_back(before).await?;
    pair.replica.promote().await?;
    trial.charges(&pair.replica.url()).await?;
    pair.primary.thaw()?;
    let role: redis::Value = pair.primary.query(&["ROLE"]).await?;
    let claims = u64::from(format!("{role:?}").contains("master"));
    tokio::time::sleep(LinkLimits::default().gray_failure_max()).await;
    let (old, new) = (&pair.primary, &pair.replica);
    let (old_ran, new_ran) = (old.ran(&CHARGES).await?, new.ran(&CHARGES).await?);
    trial.part().await;
    let charged_late = old.ran(&CHARGES).await? - old_ran;
    let charged_rightly = new.ran(&CHARGES).await? - new_ran;
    let figures = vec![
        Figure::fault_seen("primaries of old that call themselves so", claims),
        Figure::fault_seen("calls to the new primary", charged_rightly),
        Figure::at_most("calls to the old primary", charged_late, 0),
    ];
    let did = "froze a primary, promoted its replica, and let the old one go on";
    Ok(trial.end(ScenarioReport { did, figures, lost, losses: 0, held_back: 0 }).await)
}
