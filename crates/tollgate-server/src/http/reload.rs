//! `POST /v1/policy/reload`: reloads the policy file, for administrators.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::spawn_blocking;
use tollgate::model::Store;

use super::app::App;
use super::audit::{Actor, AuditEvent};
use super::json;
use super::problem::{Kind, Problem};
use super::respond::Answer;

/// A function that reloads the policy. It returns the result, or the reason why the current policy
/// stays in force.
#[derive(Clone)]
pub struct Reload(Arc<dyn Fn() -> Result<Value, String> + Send + Sync>);

impl Reload {
    /// Calls `reload` for each request. It may read files.
    pub fn new(reload: impl Fn() -> Result<Value, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reload))
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reload")
    }
}

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
