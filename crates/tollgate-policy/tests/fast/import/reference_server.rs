//! A minimal model of the decisions that `envoyproxy/ratelimit` makes with a file.
//!
//! The model is written from the documented behavior of that server, and works on the parsed file
//! itself. The model shares no code with the import or the policy.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

/// A descriptor of a request: its entries and its hits.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) entries: Vec<(String, String)>,
    pub(crate) hits: u64,
}

/// The answer of the server: whether the request is over its limit, and which of its descriptors
/// are over theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) is_over: bool,
    pub(crate) descriptors: Vec<bool>,
}

/// The model of the server, with one loaded file.
pub(crate) struct ReferenceServer {
    file: Value,
    counters: HashMap<Counter, u64>,
}

/// A counter: the matched keys and values, the unit of time, and the start of the window.
type Counter = (Vec<(String, String)>, String, u64);

impl ReferenceServer {
    pub(crate) fn new(file: Value) -> Self {
        Self { file, counters: HashMap::new() }
    }

    /// Decides a request at a time in seconds since the epoch.
    pub(crate) fn should_rate_limit(&mut self, now: u64, request: &[Asked]) -> Answer {
        let found: Vec<_> =
            request.iter().map(|requested| self.limit(&requested.entries)).collect();
        let replaced: HashSet<String> =
            found.iter().flatten().flat_map(|found| found.replaces.clone()).collect();
        let mut over_by_quota: HashMap<String, bool> = HashMap::new();
        let mut answer = Answer { is_over: false, descriptors: Vec::new() };
        for (requested, found) in request.iter().zip(found) {
            let counted = found
                .filter(|found| !found.is_unlimited)
                .filter(|found| found.name.as_ref().is_none_or(|name| !replaced.contains(name)));
            let Some(found) = counted else {
                answer.descriptors.push(false);
                continue;
            };
            let is_over = self.add_hits(now, &found, requested.hits) && !found.is_shadow;
            answer.descriptors.push(is_over);
            if found.is_quota {
                *over_by_quota.entry(quota_group(&requested.entries)).or_default() |= is_over;
            } else {
                answer.is_over |= is_over;
            }
        }
        answer.is_over |= !over_by_quota.is_empty() && over_by_quota.values().all(|over| *over);
        answer
    }

    /// Counts hits and returns whether they exceed the limit.
    fn add_hits(&mut self, now: u64, found: &Found, hits: u64) -> bool {
        let seconds = seconds(&found.unit);
        let window = (found.counted.clone(), found.unit.clone(), now / seconds * seconds);
        let used = self.counters.entry(window).or_default();
        *used += hits;
        *used > found.requests
    }

    /// Returns the limit of a descriptor's last entry.
    fn limit(&self, entries: &[(String, String)]) -> Option<Found> {
        let mut level = &self.file["descriptors"];
        let mut counted = Vec::new();
        for (index, (key, value)) in entries.iter().enumerate() {
            let nodes: Vec<&Value> = level.as_array()?.iter().collect();
            let of_key = || nodes.iter().filter(|node| text(node, "key") == *key);
            let exact = of_key().find(|node| !value.is_empty() && text(node, "value") == *value);
            let wild = || of_key().find(|node| matches_wildcard(text(node, "value"), value));
            let plain = || of_key().find(|node| text(node, "value").is_empty());
            let node = exact.or_else(wild).or_else(plain)?;
            let is_shared = flag(node, "share_threshold");
            let value = if is_shared { text(node, "value") } else { value };
            counted.push((key.clone(), value.to_owned()));
            if index + 1 == entries.len() {
                return Found::new(node, counted);
            }
            level = &node["descriptors"];
        }
        None
    }
}

/// A limit and the key of its counter.
struct Found {
    counted: Vec<(String, String)>,
    requests: u64,
    unit: String,
    is_unlimited: bool,
    is_shadow: bool,
    is_quota: bool,
    name: Option<String>,
    replaces: BTreeSet<String>,
}

impl Found {
    fn new(node: &Value, counted: Vec<(String, String)>) -> Option<Self> {
        let limit = node.get("rate_limit")?;
        let replaces = limit["replaces"].as_array();
        Some(Self {
            counted,
            requests: limit["requests_per_unit"].as_u64().unwrap_or(0),
            unit: text(limit, "unit").to_owned(),
            is_unlimited: flag(limit, "unlimited"),
            is_shadow: flag(node, "shadow_mode"),
            is_quota: flag(node, "quota_mode"),
            name: Some(text(limit, "name").to_owned()).filter(|name| !name.is_empty()),
            replaces: replaces
                .map(|names| names.iter().map(|name| text(name, "name").to_owned()).collect())
                .unwrap_or_default(),
        })
    }
}

/// Returns whether a value matches the text around the first star of a pattern.
fn matches_wildcard(pattern: &str, value: &str) -> bool {
    pattern.split_once('*').is_some_and(|(before, after)| {
        value.len() >= before.len() + after.len()
            && value.starts_with(before)
            && value.ends_with(after)
    })
}

/// Returns the quota group of a descriptor. Descriptors with the same backend and model are over
/// their limits together. An empty name counts as no name.
fn quota_group(entries: &[(String, String)]) -> String {
    let last = |name: &str| {
        let found = entries.iter().rfind(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    match (last("backend_name"), last("model_name_override")) {
        ("", "") => format!("{entries:?}"),
        (backend, model) => format!("{backend:?} {model:?}"),
    }
}

fn seconds(unit: &str) -> u64 {
    match unit {
        "minute" => 60,
        "hour" => 60 * 60,
        "day" => 24 * 60 * 60,
        _ => 1,
    }
}

fn text<'v>(node: &'v Value, key: &str) -> &'v str {
    node[key].as_str().unwrap_or("")
}

fn flag(node: &Value, key: &str) -> bool {
    node[key].as_bool().unwrap_or(false)
}
