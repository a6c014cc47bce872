//! A memcached server dies, and an empty server replaces it.

use tollgate_backend::Backend;

use super::*;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let mut server = site.memcached().await?;
    let (at, deadline) = (server.address(), DEADLINE.as_millis());
    let store =
        format!("{{ memcached: {{ servers: ['{at}'], nodes: {NODES}, deadline: {deadline}ms }} }}");
    let trial = Trial::of(site, Fleet::open(&store).await?).await?;
    let (before, since) = (trial.load.fallback(), trial.load.decided());
    {
        let recorder = trial.nodes.recorder();
        let _losing = recorder.begin_loss();
        server.kill()?;
        trial.falls_back(before).await?;
        trial.part().await;
        server.start_again().await?;
        let found = async || Ok(trial.nodes.stores().all(|store| restarts(store) > 0));
        until("that all nodes report the restart", found).await?;
    }
    let fallback = trial.fallback_since(since, MANY_FALLBACK);
    trial.part().await;
    let reported = trial.nodes.stores().map(restarts).min().unwrap_or_default();
    let figures = vec![fallback, Figure::fault_seen("restarts that each node reported", reported)];
    let did = "killed a memcached, and started it again with nothing in it";
    Ok(trial.end(ScenarioReport { did, figures, lost: 0, losses: 1, held_back: 0 }).await)
}

/// Returns how often a node detected a restart of its server.
fn restarts(store: &Backend) -> u64 {
    let servers = store.base_stores().into_iter().flat_map(|(_, store)| store.servers());
    servers.map(|reported| reported.server.losses.restarts).sum()
}
