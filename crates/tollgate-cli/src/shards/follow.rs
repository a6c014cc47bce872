//! How far a move between maps of shards is.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::store::rebalance::Phase;
use tollgate_backend::{Backend, MapStatus, MoveStatus, Refunds, hash_key, phase_word};
use tollgate_policy::LoadedPolicy;

use crate::failure::Failure;
use crate::output::{Form, print};

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Takes part in the move as a node that decides nothing, and tells each change of how far it is,
/// until it is over. It does not count itself among the nodes. A node that starts later than others is over later than they are.
pub(crate) async fn run(loaded: &LoadedPolicy, form: Form) -> Result<(), Failure> {
    let key = hash_key(&loaded.settings.key)?;
    let backend = Backend::open(&loaded.settings, key, &loaded.policy, Refunds::ByResponses)?;
    backend.started().await;
    let Backend::Redis(fleet) = &backend else {
        return Err("store.redis names no shards".into());
    };
    let mut message = String::new();
    loop {
        let status = fleet.map_status();
        let Some(moving) = status.moving else {
            return Err("nothing moves: store.redis.previous is not there".into());
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
        tokio::time::sleep(LOOK).await;
    }
}

fn text(status: &MapStatus, moving: &MoveStatus) -> String {
    let described = match (moving.phase, status.nodes) {
        (_, None) => "asking the shards".to_owned(),
        (Phase::DualWrite, Some(nodes)) if nodes.before > 0 => {
            format!("waiting for {} on the old map", count(nodes.before, "node"))
        }
        (Phase::DualWrite, Some(nodes)) if nodes.silent > 0 => {
            format!("no answer yet of {}", count(nodes.silent as u64, "shard"))
        }
        (Phase::DualWrite, Some(_)) => "no node on the old map: about to lead".to_owned(),
        (Phase::Cutover, Some(_)) => {
            "new owners decide, until the longest window is over".to_owned()
        }
        (Phase::Done, Some(_)) => "leave store.redis.previous out".to_owned(),
    };
    let (phase, from, to) = (phase_word(moving.phase), moving.from, status.version);
    let on_new = count(others_alike(status), "node");
    format!("{phase:10}  {from} -> {to}  {on_new} on the new map; {described}\n")
}

/// The nodes on the new map beside this process, which decides nothing.
fn others_alike(status: &MapStatus) -> u64 {
    status.nodes.map_or(0, |nodes| nodes.alike.saturating_sub(1))
}

fn count(number: u64, of: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {of}{plural}")
}

/// How far the move is. What this process carried is nothing: it is left out.
fn followed(status: &MapStatus, moving: &MoveStatus) -> Value {
    let mut value = value(status);
    value["rebalance"] =
        json!({ "phase": phase_word(moving.phase), "from": moving.from.to_string() });
    if status.nodes.is_some() {
        value["nodes"]["current"] = others_alike(status).into();
    }
    value
}

/// The map and its move, as the administration's listener tells them.
pub(crate) fn value(status: &MapStatus) -> Value {
    json!({
        "version": status.version.to_string(),
        "nodes": status.nodes.map(|nodes| json!({
            "current": nodes.alike,
            "previous": nodes.before,
            "other": nodes.others,
            "unanswered_shards": nodes.silent,
        })),
        "rebalance": status.moving.map(|moving| json!({
            "phase": phase_word(moving.phase),
            "from": moving.from.to_string(),
            "transferred": moving.carried,
            "transfer_failures": moving.failed_transfers,
            "missed_writes": moving.diverged,
        })),
    })
}
