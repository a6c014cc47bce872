//! The status of rollouts and shadow stores.

use serde_json::{Value, json};
use tollgate::model::Admission;
use tollgate_backend::{Backend, RolloutBackend, ShadowBackend};
use tollgate_server::http::Percentage;
use tollgate_stores::shadow::{ComparedAnswer, Difference};

use super::base_store;

/// Returns the progress of a rollout.
pub(super) fn moving(moving: &RolloutBackend<Backend>) -> Value {
    json!({
        "percent": Percentage(moving.percentage().get()),
        "transferred": moving.transferred(),
        "transfer_failures": moving.failed_transfers(),
        "refund_failures": moving.unrefunded(),
        "from": side(moving.from()),
        "to": side(moving.to()),
    })
}

/// Returns the differences between two stores.
pub(super) fn compared(compared: &ShadowBackend<Backend>) -> Value {
    let differences = compared.differences();
    json!({
        "percent": Percentage(compared.percentage().get()),
        "compared": differences.compared,
        "differences": {
            "decision": differences.decision,
            "remaining": differences.remaining,
            "reset": differences.reset,
        },
        "unanswered": differences.unanswered,
        "skipped": differences.skipped,
        "uncomparable": differences.uncomparable,
        "examples": differences.examples.iter().map(example).collect::<Vec<_>>(),
        "store": side(compared.store()),
        "shadow_store": side(compared.shadow_store()),
    })
}

fn side(side: &Backend) -> Value {
    json!({ "store": side.kind(), "counts": base_store::counts(side), "map": base_store::map(side) })
}

fn example(difference: &Difference) -> Value {
    json!({
        "kind": difference.kind.to_string(),
        "limit": &*difference.limit,
        "at_ms": difference.at.as_millis(),
        "store": to_json(difference.store),
        "shadow_store": to_json(difference.shadow),
    })
}

fn to_json(answer: ComparedAnswer) -> Value {
    json!({
        "admitted": answer.admission == Admission::Now,
        "used": answer.used,
        "full_reset_at_ms": answer.full_reset_at.as_millis(),
    })
}
