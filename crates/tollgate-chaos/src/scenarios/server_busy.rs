//! A script that never ends blocks all other commands of the server.

use super::*;

/// The argument that makes the server reply with the error `BUSY` after a script has run for 5 ms.
const SOON: [&str; 2] = ["--lua-time-limit", "5"];
const ENDLESS: [&str; 3] = ["EVAL", "while true do end", "0"];

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&SOON).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    let port = server.port();
    // The script does not return before it is killed.
    let endless =
        tokio::spawn(
            async move { Server::query_at::<redis::Value>(port, &ENDLESS).await.is_err() },
        );
    trial.falls_back(before).await?;
    trial.part().await;
    let fallback = trial.fallback_since(since, MOST_FALLBACK);
    until("that the script is ended", async || Ok(server.send(&["SCRIPT", "KILL"]).await.is_ok()))
        .await?;
    let was_ended = endless.await.unwrap_or(false);
    trial.recovers().await?;
    let figures =
        vec![Figure::fault_seen("scripts that had to be ended", u64::from(was_ended)), fallback];
    let did = "kept the server busy with a script that does not end, and ended it";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
