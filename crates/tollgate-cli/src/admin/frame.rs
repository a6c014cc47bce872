//! Formats a node's state as one screen.

use std::fmt::Write;

use serde_json::Value;

use super::format::{lines, members, table, word};
use super::snapshot::{Decisions, Snapshot};

/// The most limits that one frame shows. The limits with the most decisions are shown.
const MAX_LIMITS: usize = 10;

/// The most subjects that one frame shows, over all limits.
const MAX_SUBJECTS: usize = 8;

/// Returns the frame for `now`. The frame shows rates since `before`, or the counts since the node
/// started if there is no `before`.
pub(crate) fn frame(now: &Snapshot, before: Option<&Snapshot>) -> String {
    let (policy, store) = (word(&now.status["policy"]), word(&now.status["store"]));
    let mut text = format!("{}  policy {policy}  store {store}\n\n", now.client);
    text += &limits(now, before);
    for (title, ranking) in [("most charged", &now.charged), ("most refused", &now.refused)] {
        text += &subjects(title, ranking);
    }
    text += &shards(&now.status["shards"]);
    text
}

fn limits(now: &Snapshot, before: Option<&Snapshot>) -> String {
    let header = match before {
        Some(_) => ["limit", "admitted/s", "refused/s"],
        None => ["limit", "admitted", "refused"],
    };
    let mut rows: Vec<_> = now.decisions.iter().collect();
    let weight = |counts: &Decisions| std::cmp::Reverse(counts.admitted + counts.refused);
    rows.sort_by_key(|(_, counts)| weight(counts));
    let mut table = table(&header);
    for (limit, counts) in rows.into_iter().take(MAX_LIMITS) {
        let since_last = before.map(|before| {
            let passed = now.at.duration_since(before.at).as_millis().max(1);
            let then = before.decisions.get(limit).copied().unwrap_or_default();
            let rate = |now: u64, then: u64| {
                let tenths = u128::from(now.saturating_sub(then)) * 10_000 / passed;
                format!("{}.{}", tenths / 10, tenths % 10)
            };
            (rate(counts.admitted, then.admitted), rate(counts.refused, then.refused))
        });
        let total = || (counts.admitted.to_string(), counts.refused.to_string());
        let (admitted, refused) = since_last.unwrap_or_else(total);
        table.add_row([limit, &admitted, &refused]);
    }
    lines(&table)
}

fn subjects(title: &str, ranking: &Value) -> String {
    let mut rows = Vec::new();
    for top in members(&ranking["limits"]) {
        for one in members(&top["subjects"]) {
            rows.push((one["units"].as_u64().unwrap_or_default(), word(&top["limit"]), one));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by_key(|(units, ..)| std::cmp::Reverse(*units));
    let mut table = table(&[title, "limit", "units", "error"]);
    for (units, limit, one) in rows.into_iter().take(MAX_SUBJECTS) {
        let error = one["error"].as_u64().unwrap_or_default();
        table.add_row([subject(&one["subject"]), limit, units.to_string(), error.to_string()]);
    }
    format!("\n{}", lines(&table))
}

fn subject(values: &Value) -> String {
    let mut text = String::new();
    for (name, value) in values.as_object().into_iter().flatten() {
        let separator = if text.is_empty() { "" } else { ", " };
        let value = if value.is_null() { "(none)".to_owned() } else { word(value) };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{name}={value}");
    }
    if text.is_empty() { "everybody".to_owned() } else { text }
}

fn shards(shards: &Value) -> String {
    if members(shards).is_empty() {
        return String::new();
    }
    let mut table = table(&["shard", "primary", "circuit breakers"]);
    for shard in members(shards) {
        let primary = match &shard["primary"] {
            Value::Null => "DOWN".to_owned(),
            primary => word(primary),
        };
        let circuits =
            members(&shard["servers"]).iter().map(|batcher| word(&batcher["circuit_breaker"]));
        table.add_row([word(&shard["name"]), primary, circuits.collect::<Vec<_>>().join(" ")]);
    }
    format!("\n{}", lines(&table))
}
