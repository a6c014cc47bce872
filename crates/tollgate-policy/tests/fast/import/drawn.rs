//! Random files and requests. They have few different keys and values, so requests often match.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::import::reference_server::Asked;

const KEYS: [&str; 4] = ["path", "user", "backend_name", "model_name_override"];
const VALUES: [&str; 8] = ["", "a", "ab", "abc", "*", "a*", "ab*", "a*c"];
const SENT: [&str; 8] = ["", "a", "ab", "abc", "abbc", "b", "a*", "x*"];
const NAMES: [&str; 3] = ["one", "two", "path"];

/// Generates a file that the server loads.
pub(crate) fn file() -> impl Strategy<Value = Value> {
    level(3).prop_map(|descriptors| json!({ "domain": "edge", "descriptors": descriptors }))
}

/// Generates requests, each with the number of seconds since the previous one.
pub(crate) fn requests() -> impl Strategy<Value = Vec<(u64, Vec<Asked>)>> {
    let entry = (select(&KEYS[..]), select(&SENT[..]));
    let entry = entry.prop_map(|(key, value)| (key.to_owned(), value.to_owned()));
    // Most descriptors have as many entries as most files have levels.
    let lengths = select(&[1, 1, 1, 1, 2, 2, 3][..]);
    let entries = lengths.prop_flat_map(move |length| prop::collection::vec(entry.clone(), length));
    let requested = (entries, 1..4_u64);
    let requested = requested.prop_map(|(entries, hits)| Asked { entries, hits });
    let request = (select(&[0, 0, 0, 1, 30, 4000][..]), prop::collection::vec(requested, 1..4));
    prop::collection::vec(request, 1..40)
}

fn level(depth: u32) -> BoxedStrategy<Vec<Value>> {
    let below = match depth {
        1 => Just(Vec::new()).boxed(),
        _ => prop_oneof![Just(Vec::new()), level(depth - 1)].boxed(),
    };
    let node = (select(&KEYS[..]), select(&VALUES[..]), limit(), any::<[bool; 3]>(), below);
    let node = node.prop_map(|(key, value, limit, [shares, is_shadow, is_quota], below)| {
        let mut node = Map::new();
        node.insert("key".to_owned(), key.into());
        if !value.is_empty() {
            node.insert("value".to_owned(), value.into());
        }
        node.insert("share_threshold".to_owned(), (shares && value.contains('*')).into());
        // The import only approximates the combination of both keys.
        node.insert("shadow_mode".to_owned(), (is_shadow && !is_quota).into());
        node.insert("quota_mode".to_owned(), is_quota.into());
        node.extend(limit.map(|limit| ("rate_limit".to_owned(), limit)));
        if !below.is_empty() {
            node.insert("descriptors".to_owned(), below.into());
        }
        Value::Object(node)
    });
    prop::collection::vec(node, 1..16)
        .prop_map(|mut nodes| {
            let mut observed = std::collections::HashSet::new();
            nodes.retain(|node| observed.insert((node["key"].clone(), node.get("value").cloned())));
            nodes
        })
        .boxed()
}

fn limit() -> impl Strategy<Value = Option<Value>> {
    let name = prop::option::of(select(&NAMES[..]));
    let replaces = prop::collection::vec(select(&["one", "two", "path", "nobody"][..]), 0..2);
    let counted = (0..6_u32, select(&["second", "minute", "hour", "day"][..]));
    let rate = prop_oneof![
        1 => Just(json!({ "unlimited": true })),
        6 => counted
            .prop_map(|(requests, unit)| json!({ "requests_per_unit": requests, "unit": unit })),
    ];
    let limit = (rate, name, replaces).prop_map(|(mut limit, name, replaces)| {
        let replaces = replaces.into_iter().filter(|other| Some(*other) != name);
        let replaces: Vec<Value> = replaces.map(|name| json!({ "name": name })).collect();
        if let Some(name) = name {
            limit["name"] = name.into();
        }
        limit["replaces"] = replaces.into();
        limit
    });
    prop::option::weighted(0.8, limit)
}
