//! The server evicts counters of current windows to free memory for another program's keys.

use super::*;

/// A script that writes keys of another program.
const FLOOD: &str = "for i = 1, 20000 do redis.call('SET', 'flood:' .. i, 'x') end";
/// The memory in bytes that the server may use in addition, which is far too little for the keys of
/// [`FLOOD`].
const ROOM: u64 = 64 * 1024;

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&["--maxmemory-policy", "allkeys-lru"]).await?;
    let trial = Trial::begin(site, &[primary(&server.url())], DEADLINE).await?;
    let dropped = {
        // No requests are sent while the keys are written, so each counter is evicted at most once.
        let _hush = trial.load.pause_load().await;
        let _losing = trial.nodes.recorder().begin_loss();
        let before = counters(&server).await?;
        let most = server.info_field("memory", "used_memory:").await? + ROOM;
        server.send(&["CONFIG", "SET", "maxmemory", &most.to_string()]).await?;
        server.send(&["EVAL", FLOOD, "0"]).await?;
        let fits = async || Ok(server.info_field("memory", "used_memory:").await? <= most);
        until("that the server has made room", fits).await?;
        server.send(&["CONFIG", "SET", "maxmemory", "0"]).await?;
        before.saturating_sub(counters(&server).await?)
    };
    let reported = async || Ok(trial.nodes.windows_lost() > 0);
    until("that all nodes report lost windows", reported).await?;
    trial.part().await;
    let figures = vec![
        Figure::fault_seen("counters dropped", dropped),
        Figure::fault_seen("losses that each node reported", trial.nodes.windows_lost()),
    ];
    let did = "had the server drop counters to make room for other keys";
    Ok(trial.end(ScenarioReport { did, figures, lost: 0, losses: 1, held_back: 0 }).await)
}

/// Returns the number of client counters.
async fn counters(server: &Server) -> Result<u64, ChaosError> {
    let keys: Vec<Vec<u8>> = server.query(&["KEYS", &format!("tg1:{HOUR}*")]).await?;
    Ok(keys.len() as u64)
}
