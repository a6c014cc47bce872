//! Connections close in the middle of replies.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;

/// The time for which replies are cut after the same number of bytes, and the time without cuts
/// before the next number.
const EACH: Duration = Duration::from_millis(25);
/// A connection is closed after 0 to `LAST_BYTE - 1` bytes of a reply. This range includes the
/// first bytes of any reply.
const LAST_BYTE: usize = 64;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let network = Network::before(server.port()).await?;
    let trial = Trial::begin(site, &[primary(&network.url())], DEADLINE).await?;
    let ends = Instant::now() + 2 * site.part();
    let mut byte = 0;
    while Instant::now() < ends || network.fault_seen() == 0 {
        network.replies(LinkMode::CutAfter(byte % LAST_BYTE));
        byte += 1;
        sleep(EACH).await;
        // A new connection is attempted before the next cut.
        network.replies(LinkMode::Open);
        sleep(EACH).await;
    }
    trial.recovers().await?;
    let figures = vec![Figure::fault_seen("replies cut", network.fault_seen())];
    let did = "cut connections after the nth byte of their replies, for every n";
    Ok(trial.end(ScenarioReport { did, figures, ..ScenarioReport::default() }).await)
}
