//! What a policy would have done with the requests of a log, as the administration's listener tells it.

use std::sync::Arc;

use serde_json::Value;
use tollgate::Limiter;
use tollgate::core::Policy;
use tollgate::store::memory::Bounds;
use tollgate_backend::Backend;
use tollgate_server::http::Simulate;

use crate::simulate::log::{Input, Options};
use crate::simulate::progress::ProgressTarget;
use crate::simulate::run::{Candidate, Plan, run};

/// Subjects that are told of.
const TOP: usize = 20;

/// The name of a policy that was sent.
const SENT: &str = "the policy to try";

/// Simulates what the policy of `limiter` would have done with a log, beside another one if it is
/// given.
pub(crate) fn of(limiter: Arc<Limiter<Backend>>) -> Simulate {
    Simulate::new(move |log, other| {
        let in_force = limiter.policy();
        let compare = other.map(|text| -> Result<_, String> {
            let loaded =
                tollgate_policy::parse(SENT, text).map_err(|message| message.to_string())?;
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

/// Its store is one in memory, whatever the store in force is.
fn candidate(name: &str, policy: Policy) -> Candidate {
    Candidate { name: name.to_owned(), policy, bounds: Bounds::default() }
}

fn simulate(plan: Plan) -> Result<Value, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(serde_json::to_value(runtime.block_on(run(plan))?)?)
}
