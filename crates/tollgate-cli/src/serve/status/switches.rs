//! The active kill switches: overrides that apply to all requests.

use serde_json::{Value, json};
use tollgate::model::Timestamp;
use tollgate::overrides::{Effect, Override, OverrideTable, OverrideTarget};

/// Returns the kill switches of `table` that are active at `now`: overrides of limits, rules and
/// shedding that apply to every request.
pub(super) fn switches(table: &OverrideTable, now: Timestamp) -> Vec<Value> {
    let lasting = table.overrides().iter().filter(|one| now < one.expires_at);
    lasting.filter_map(|one| switch(one)).collect()
}

fn switch(one: &Override) -> Option<Value> {
    let (kind, name) = match &one.target.target {
        OverrideTarget::AllSubjects => ("limit", one.target.limit.as_deref()),
        OverrideTarget::Rule(name) => ("rule", Some(&**name)),
        OverrideTarget::Shedding(shedder) => ("shedding", Some(shedder.name())),
        _ => return None,
    };
    let effect = match one.effect {
        Effect::Quota { .. } => "quota",
        Effect::Unlimited => "unlimited",
        Effect::Blocked => "blocked",
        Effect::Counted => "counted",
    };
    Some(json!({
        "kind": kind,
        "name": name,
        "effect": effect,
        "expires": one.ends_at(),
        "reason": &*one.reason,
    }))
}
