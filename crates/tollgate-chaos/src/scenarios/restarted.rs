//! The server dies and restarts, and loads its saved data for a while.

use super::*;

/// The arguments with which a server loads its data slowly.
const SLOWLY: [&str; 4] =
    ["--key-load-delay", "100", "--loading-process-events-interval-bytes", "1024"];

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let mut server = site.server(&["--enable-debug-command", "yes"]).await?;
    let keys = if site.length() == Length::Quick { "5000" } else { "50000" };
    server.send(&["DEBUG", "POPULATE", keys]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let (mark, before) = (trial.mark(), trial.load.fallback());
    server.send(&["SAVE"]).await?;
    server.kill()?;
    let lost = trial.max_lost_units(mark);
    trial.falls_back(before).await?;
    server.start_again(&SLOWLY)?;
    let loading = async || {
        let reply = server.send(&["PING"]).await;
        Ok(reply.is_err_and(|error| error.is_answer("LOADING")))
    };
    until("that the server loads", loading).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    trial.falls_back(before).await?;
    trial.recovers().await?;
    let figures = vec![trial.fallback_since(since, MANY_FALLBACK)];
    let did = "killed a server, and had it load what it had saved";
    Ok(trial.end(ScenarioReport { did, figures, lost, losses: 0, held_back: 0 }).await)
}
