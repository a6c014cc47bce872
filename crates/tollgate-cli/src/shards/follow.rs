//! Follows the progress of a rebalance.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_backend::{Backend, MapStatus, MoveStatus, Refunds, hash_key, phase_word};
use tollgate_policy::LoadedPolicy;
use tollgate_stores::rebalance::Phase;

use crate::failure::Failure;
use crate::output::{Form, print};

/// The time between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Joins the rebalance as an observer, which makes no decisions and is not counted among the nodes.
/// Prints each change of the progress until the rebalance is done. If the observer starts later
/// than the nodes, it may also report the end later than the nodes.
pub(crate) async fn run(loaded: &LoadedPolicy, form: Form) -> Result<(), Failure> {
    let key = hash_key(&loaded.settings.key)?;
    let backend = Backend::open(&loaded.settings, key, &loaded.policy, Refunds::ByResponses)?;
    backend.started().await;
    let Backend::Redis(fleet) = &backend else {
        return Err("store.redis has no shards".into());
    };
    let mut message = String::new();
    loop {
        let status = fleet.map_status();
        let Some(moving) = status.moving else {
            return Err("no rebalance: store.redis.previous is not set".into());
        };
        let line = match form {
            Form::Text => text(&status, &moving),
            Form::Json => format!("{}\n", followed(&status, &moving)),
        };
        if line != message {
            print(&line)?;
            message = line;
        }
        if moving.phase == Phase::Done {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn text(status: &MapStatus, moving: &MoveStatus) -> String {
    let described = match (moving.phase, status.nodes) {
        (_, None) => "querying the shards".to_owned(),
        (Phase::DualWrite, Some(nodes)) if nodes.before > 0 => {
            format!("waiting for {} on the old map", count(nodes.before, "node"))
        }
        (Phase::DualWrite, Some(nodes)) if nodes.unanswered > 0 => {
            format!("no answer yet from {}", count(nodes.unanswered as u64, "shard"))
        }
        (Phase::DualWrite, Some(_)) => "no node on the old map: about to start".to_owned(),
        (Phase::Cutover, Some(_)) => {
            "the new shards decide until the longest window has ended".to_owned()
        }
        (Phase::Done, Some(_)) => "remove store.redis.previous".to_owned(),
    };
    let (phase, from, to) = (phase_word(moving.phase), moving.from, status.version);
    let on_new = count(other_current_nodes(status), "node");
    format!("{phase:10}  {from} -> {to}  {on_new} on the new map; {described}\n")
}

/// Returns the number of nodes that use the new shard map. This process is not counted, because it
/// makes no decisions.
fn other_current_nodes(status: &MapStatus) -> u64 {
    status.nodes.map_or(0, |nodes| nodes.current.saturating_sub(1))
}

fn count(number: u64, of: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {of}{plural}")
}

/// Describes the progress of the rebalance. The document does not contain this process, because it
/// moves no subjects.
fn followed(status: &MapStatus, moving: &MoveStatus) -> Value {
    let mut value = value(status);
    value["rebalance"] =
        json!({ "phase": phase_word(moving.phase), "from": moving.from.to_string() });
    if status.nodes.is_some() {
        value["nodes"]["current"] = other_current_nodes(status).into();
    }
    value
}

/// Returns the shard map and its rebalance, in the format of the admin listener.
pub(crate) fn value(status: &MapStatus) -> Value {
    json!({
        "version": status.version.to_string(),
        "nodes": status.nodes.map(|nodes| json!({
            "current": nodes.current,
            "previous": nodes.before,
            "other": nodes.others,
            "unanswered_shards": nodes.unanswered,
        })),
        "rebalance": status.moving.map(|moving| json!({
            "phase": phase_word(moving.phase),
            "from": moving.from.to_string(),
            "transferred": moving.transferred,
            "transfer_failures": moving.failed_transfers,
            "missed_writes": moving.diverged,
        })),
    })
}
