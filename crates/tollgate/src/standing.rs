//! All standings of a caller as GitHub's `GET /rate_limit` answers them.

use std::fmt::Write;

use tollgate_core::{Standing, Verdict};

/// `{"resources": {…}, "rate": …}`: each visible resource's limit, use, rest and reset, and once
/// more the resource `core`, or else the first, as the `rate` that older clients read.
#[must_use]
pub fn to_json(verdict: &Verdict) -> String {
    let mut resources = String::new();
    for standing in &verdict.standings {
        let separator = if resources.is_empty() { "" } else { "," };
        let resource = standing.limit.resource();
        // Writing to a string does not fail; names need no escaping in JSON.
        let _ = write!(resources, "{separator}\"{resource}\":{}", rate(standing));
    }
    let core = verdict.standings.iter().find(|standing| standing.limit.resource() == "core");
    let main = core.or_else(|| verdict.standings.first());
    let main = main.map(|standing| format!(",\"rate\":{}", rate(standing))).unwrap_or_default();
    format!("{{\"resources\":{{{resources}}}{main}}}")
}

fn rate(standing: &Standing) -> String {
    let (limit, resource) = (standing.limit.capacity(), standing.limit.resource());
    let Standing { used, remaining, resets_at, .. } = standing;
    let reset = resets_at.as_secs_ceil();
    format!(
        "{{\"limit\":{limit},\"used\":{used},\"remaining\":{remaining},\"reset\":{reset},\
         \"resource\":\"{resource}\"}}"
    )
}
