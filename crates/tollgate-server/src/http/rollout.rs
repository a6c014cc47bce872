//! `PUT /v1/rollout {"percent": 30}`: sets the percentage of clients for which the new one of two
//! stores decides, for administrators.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollgate::model::Store;

use super::app::App;
use super::audit::{Actor, AuditEvent};
use super::json;
use super::percentage::Percentage;
use super::problem::{Kind, Problem};
use super::respond::Answer;

/// The percentage to set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RolloutRequest {
    /// The percentage of clients for which the new store decides, with at most two decimal places.
    percent: Percentage,
}

/// The result of a change of the rollout.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolloutResponse {
    /// The percentage of clients for which the new store decides.
    percent: Percentage,
    /// The percentage before the change.
    before: Percentage,
}

impl<S: Store> App<S> {
    /// Sets the percentage, if the node has a rollout. The percentage stays until it is set again,
    /// by this route or by another percentage in the policy file. The change is logged.
    pub(super) fn set_rollout(&self, body: &[u8], actor: &Actor) -> Answer {
        let RolloutRequest { percent: Percentage(percent) } = json::read(body)?;
        let Some(percentage) = &self.options.rollout else {
            let detail = "this node has no rollout: configure one in the policy file";
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
