//! Simulations of a policy on an uploaded log, at the admin listener.

use std::sync::Arc;

use serde_json::Value;
use tollgate::Limiter;
use tollgate::model::Policy;
use tollgate::store::memory::Bounds;
use tollgate_backend::Backend;
use tollgate_server::http::Simulate;

use crate::simulate::log::{Input, Options};
use crate::simulate::progress::ProgressTarget;
use crate::simulate::run::{Candidate, Plan, run};

/// The number of subjects in the result.
const TOP: usize = 20;

/// The name of an uploaded policy.
const SENT: &str = "the policy to try";

/// Simulates how the policy of `limiter` would have decided the requests of a log, and another
/// policy next to it if one is given.
pub(crate) fn of(limiter: Arc<Limiter<Backend>>) -> Simulate {
    Simulate::new(move |log, other| {
        let in_force = limiter.policy();
        let compare = other.map(|text| -> Result<_, String> {
            // Files of this machine are not read for a policy that somebody sends.
            let loaded = tollgate_policy::parse_beside(&in_force, SENT, text)
                .map_err(|message| message.to_string())?;
            Ok(candidate(SENT, loaded.policy))
        });
        let plan = Plan {
            inputs: vec![Input::Sent(log)],
            options: Options::default(),
            policy: candidate(in_force.version(), Policy::clone(&in_force)),
            compare: compare.transpose()?,
            top: TOP,
            watcher: ProgressTarget::Nobody,
        };
        simulate(plan).map_err(|error| error.to_string())
    })
}

/// The simulation uses a memory store, whatever the current store is.
fn candidate(name: &str, policy: Policy) -> Candidate {
    Candidate { name: name.to_owned(), policy, bounds: Bounds::default() }
}

fn simulate(plan: Plan) -> Result<Value, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(serde_json::to_value(runtime.block_on(run(plan))?)?)
}
