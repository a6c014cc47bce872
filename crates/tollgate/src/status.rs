//! All statuses of a client, in the format of GitHub's `GET /rate_limit`.

use std::fmt::Write;

use tollgate_core::{Evaluation, LimitStatus};

/// Returns `{"resources": {…}, "rate": …}`. `resources` has limit, used, remaining and reset of
/// each visible resource. `rate`, which older clients read, repeats the resource `core`, or the
/// first resource if there is no `core`.
#[must_use]
pub fn to_json(evaluation: &Evaluation) -> String {
    let mut resources = String::new();
    for status in &evaluation.statuses {
        let separator = if resources.is_empty() { "" } else { "," };
        let resource = status.limit.resource();
        // Writing to a string never fails. Names need no escapes in JSON.
        let _ = write!(resources, "{separator}\"{resource}\":{}", rate(status));
    }
    let core = evaluation.statuses.iter().find(|status| status.limit.resource() == "core");
    let main = core.or_else(|| evaluation.statuses.first());
    let main = main.map(|status| format!(",\"rate\":{}", rate(status))).unwrap_or_default();
    format!("{{\"resources\":{{{resources}}}{main}}}")
}

fn rate(status: &LimitStatus) -> String {
    let (limit, resource) = (status.limit.capacity(), status.limit.resource());
    let LimitStatus { used, remaining, resets_at, .. } = status;
    let reset = resets_at.as_secs_ceil();
    format!(
        "{{\"limit\":{limit},\"used\":{used},\"remaining\":{remaining},\"reset\":{reset},\
         \"resource\":\"{resource}\"}}"
    )
}
