//! `PUT /v1/rollout {"percent": 30}`: how many clients the new one of two stores decides, for those
//! who run it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate::core::Store;
use tollgate::store::Percent;

use super::app::App;
use super::audit::{Caller, Deed};
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;

/// What to turn a rollout to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RolloutRequest {
    /// How many clients the new store decides, in hundredths.
    #[schemars(range(max = 100))]
    percent: u64,
}

/// What a rollout was turned to.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolloutAnswer {
    /// How many clients the new store decides, in hundredths.
    #[schemars(range(max = 100))]
    percent: u8,
    /// How many it did before.
    #[schemars(range(max = 100))]
    before: u8,
}

impl<S: Store> App<S> {
    /// Turns the rollout, if there is one. It stays so until it is turned again: here, or by another
    /// percentage in the policy file. The log keeps it.
    pub(super) fn turn(&self, body: &[u8], caller: &Caller) -> Answer {
        let RolloutRequest { percent } = json::read(body)?;
        let Some(dial) = &self.options.rollout else {
            let detail = "this node's store is no rollout: name one in the policy file";
            return Err(Problem::new(Kind::NotFound, detail));
        };
        let known = u8::try_from(percent).ok().and_then(Percent::new);
        let Some(percent) = known else {
            let detail = "a percentage is a whole number from 0 to 100";
            return Err(Problem::new(Kind::InvalidRequest, detail).at("/percent"));
        };
        let before = dial.get();
        dial.set(percent);
        let (told, target) = (|percent: Percent| Value::from(percent.get()), Value::Null);
        let (what, before_told, after) = ("rollout turned", told(before), told(percent));
        self.note(caller, Deed { what, target, before: before_told, after });
        Ok(json::write(&RolloutAnswer { percent: percent.get(), before: before.get() })?)
    }
}
