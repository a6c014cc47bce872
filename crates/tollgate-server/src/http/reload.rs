//! `POST /v1/policy/reload`: reloads the policy file, for administrators.

use serde_json::Value;
use tokio::task::spawn_blocking;
use tollgate::model::Store;

use super::app::App;
use super::audit::{Actor, AuditEvent};
use super::callbacks::Reload;
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;

impl<S: Store> App<S> {
    /// Reloads the policy, if this listener supports it.
    pub(super) async fn reload(&self, actor: &Actor) -> Answer {
        let Some(Reload(reload)) = self.options.reload.clone() else {
            return Err(Problem::new(Kind::NotFound, "this listener cannot reload the policy"));
        };
        let version = || Value::from(&**self.limiter.policy().version());
        let before = version();
        match spawn_blocking(move || reload()).await {
            Ok(Ok(message)) => {
                let (action, target) = ("policy reloaded", Value::Null);
                self.note(actor, AuditEvent { action, target, before, after: version() });
                Ok(json::write(&message)?)
            }
            Ok(Err(reason)) => Err(Problem::new(Kind::PolicyRefused, reason)),
            Err(error) => Err(Problem::new(Kind::Internal, error.to_string())),
        }
    }
}
