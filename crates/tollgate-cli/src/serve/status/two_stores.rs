//! How two stores at once stand.

use serde_json::{Value, json};
use tollgate::core::Fit;
use tollgate::store::shadow::{Difference, Told};
use tollgate_backend::{Compared, Moving, Side};
use tollgate_server::http::Percentage;

use super::leaf;

/// How far a move is.
pub(super) fn moving(moving: &Moving) -> Value {
    json!({
        "percent": Percentage(moving.dial().get()),
        "carried": moving.carried(),
        "left_behind": moving.left_behind(),
        "stranded": moving.stranded(),
        "from": side(moving.from()),
        "to": side(moving.to()),
    })
}

/// How two stores differ.
pub(super) fn compared(compared: &Compared) -> Value {
    let differences = compared.differences();
    json!({
        "percent": Percentage(compared.dial().get()),
        "compared": differences.compared,
        "differences": {
            "verdict": differences.verdict,
            "remaining": differences.remaining,
            "reset": differences.reset,
        },
        "unanswered": differences.unanswered,
        "skipped": differences.skipped,
        "uncomparable": differences.uncomparable,
        "examples": differences.examples.iter().map(example).collect::<Vec<_>>(),
        "store": side(compared.store()),
        "compared_with": side(compared.compared_with()),
    })
}

fn side(side: &Side) -> Value {
    let leaf = side.leaf();
    json!({ "store": leaf::kind(&leaf), "counts": leaf::counts(&leaf), "map": leaf::map(&leaf) })
}

fn example(difference: &Difference) -> Value {
    json!({
        "kind": difference.kind.to_string(),
        "limit": &*difference.limit,
        "at_ms": difference.at.as_millis(),
        "store": told(difference.store),
        "compared_with": told(difference.shadow),
    })
}

fn told(told: Told) -> Value {
    json!({
        "admitted": told.fit == Fit::Now,
        "used": told.used,
        "whole_at_ms": told.whole_at.as_millis(),
    })
}
