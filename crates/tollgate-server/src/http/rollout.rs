//! `PUT /v1/rollout {"percent": 30}`: how many clients the new one of two stores decides, for those
//! who run it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollgate::core::Store;

use super::app::App;
use super::audit::{Actor, AuditEvent};
use super::json;
use super::percentage::Percentage;
use super::problem::{Kind, Problem};
use super::respond::Answer;

/// What to turn a rollout to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RolloutRequest {
    /// How many clients of a hundred the new store decides, to two places after the point.
    percent: Percentage,
}

/// What a rollout was turned to.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolloutResponse {
    /// How many clients of a hundred the new store decides.
    percent: Percentage,
    /// How many it did before.
    before: Percentage,
}

impl<S: Store> App<S> {
    /// Turns the rollout, if there is one. It stays so until it is turned again: here, or by another
    /// percentage in the policy file. The log keeps it.
    pub(super) fn set_rollout(&self, body: &[u8], actor: &Actor) -> Answer {
        let RolloutRequest { percent: Percentage(percent) } = json::read(body)?;
        let Some(percentage) = &self.options.rollout else {
            let detail = "this node's store is no rollout: name one in the policy file";
            return Err(Problem::new(Kind::NotFound, detail));
        };
        let before = percentage.get();
        percentage.set(percent);
        let (percent, before) = (Percentage(percent), Percentage(before));
        let (action, target) = ("rollout changed", Value::Null);
        self.note(
            actor,
            AuditEvent { action, target, before: json!(before), after: json!(percent) },
        );
        Ok(json::write(&RolloutResponse { percent, before })?)
    }
}
