//! Simulations of a policy on an uploaded log or on this node's own requests, at the admin listener.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::Limiter;
use tollgate::model::Policy;
use tollgate::store::memory::Bounds;
use tollgate_backend::Backend;
use tollgate_server::http::Simulate;

use crate::simulate::log::{Input, Options};
use crate::simulate::progress::ProgressTarget;
use crate::simulate::run::{Candidate, Plan, run};
use crate::traffic_sample::{Snapshot, TrafficSample};

/// The number of subjects in the result.
const TOP: usize = 20;

/// The name of an uploaded policy.
const SENT: &str = "the policy to try";

/// The reason why there is no simulation without a log.
const NO_SAMPLE: &str = "this node keeps no sample of its requests, because `serve: { dashboard: { \
    traffic_sample: false } }` is set: send a log";

/// Returns the function that runs simulations. The function computes how the policy of `limiter`
/// would have decided the requests of a log or, without a log, the requests of `sample`. If another
/// policy is given, the function also computes the decisions of that policy.
pub(crate) fn of(limiter: Arc<Limiter<Backend>>, sample: Arc<TrafficSample>) -> Simulate {
    Simulate::new(move |log, other| {
        let (log, options, one_of) = match log {
            Some(log) => (log, Options::default(), None),
            None if sample.is_on() => {
                let Snapshot { log, options, one_of } = sample.snapshot(limiter.now());
                (log, options, Some(one_of))
            }
            None => return Err(NO_SAMPLE.to_owned()),
        };
        let in_force = limiter.policy();
        let compare = other.map(|text| -> Result<_, String> {
            // An uploaded policy must not read files of this machine.
            let loaded = tollgate_policy::parse_relative_to(&in_force, SENT, text)
                .map_err(|message| message.to_string())?;
            Ok(candidate(SENT, loaded.policy))
        });
        let plan = Plan {
            inputs: vec![Input::Sent(log)],
            options,
            policy: candidate(in_force.version(), Policy::clone(&in_force)),
            compare: compare.transpose()?,
            top: TOP,
            watcher: ProgressTarget::Hidden,
        };
        let mut report = simulate(plan).map_err(|error| error.to_string())?;
        if let (Some(one_of), Some(report)) = (one_of, report.as_object_mut()) {
            report.insert("sample".to_owned(), json!({ "one_of": one_of }));
        }
        Ok(report)
    })
}

/// Returns a policy to simulate. The simulation uses a memory store, whatever store the node uses.
fn candidate(name: &str, policy: Policy) -> Candidate {
    Candidate { name: name.to_owned(), policy, bounds: Bounds::default() }
}

fn simulate(plan: Plan) -> Result<Value, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(serde_json::to_value(runtime.block_on(run(plan))?)?)
}
