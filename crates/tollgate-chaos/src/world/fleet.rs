//! The nodes of the scenario `changing-world`, which callers query over HTTP, and the record of the
//! nodes' answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tollgate::model::{
    Admission, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, Operation, Reading,
    Readings, StoreError, StoredState, Subject, Timestamp, Value as SubjectValue,
};
use tollgate::{Clock, DecisionSource, HashKey, SystemClock};
use tollgate_conformance::history::{Outcome, Recorder};
use tollgate_stores::deadline::TIMER_GRAIN;

use super::client::NodeClient;
use super::files::Files;
use super::node::WorldNode;
use crate::error::ChaosError;
use crate::fleet::max_fallback_units;
use crate::nodes::Nodes;
use crate::policy::{self, CLIENT_HEADER, NODES};
use crate::question::Question;
use crate::site::Site;

/// One in `REFUND_INTERVAL` charges is refunded, like the charges of requests with a 304 response.
const REFUND_INTERVAL: u64 = 7;
/// The store setting for parsing a policy only for its limits. This store is never opened.
const IN_MEMORY: &str = "{ memory: {} }";

/// The nodes of the scenario `changing-world`: processes that share their limits.
#[derive(Debug)]
pub(crate) struct WorldFleet {
    nodes: Vec<WorldNode>,
    client: NodeClient,
    recorder: Arc<Recorder>,
    limits: Vec<Arc<Limit>>,
    /// The key under which the record hashes subjects.
    key: HashKey,
    fallback: u64,
    /// The number of charges so far, which is also the number of the next charge in the record.
    charged: AtomicU64,
}

/// The data for the later refund of a charge.
#[derive(Debug)]
pub(crate) struct PendingRefund {
    limit: Arc<Limit>,
    subject: Subject,
    id: ChargeId,
    position: ChargePosition,
    /// The receipt, as the node sent it.
    text: String,
}

impl WorldFleet {
    /// Starts all nodes with the policy `text`.
    pub(crate) async fn start(site: &Site, text: &str) -> Result<Self, ChaosError> {
        let (client, mut nodes) = (NodeClient::new(), Vec::new());
        for _ in 0..NODES {
            nodes.push(
                WorldNode::start(client.clone(), site.tollgate().to_owned(), site.room()?, text)
                    .await?,
            );
        }
        let loaded = policy::policy(IN_MEMORY)?;
        let limits = loaded.policy.limits().iter();
        let limits = limits.map(|limit| Arc::clone(&limit.limit)).collect();
        let (recorder, key) = (Arc::<Recorder>::default(), HashKey::random());
        let (fallback, charged) = (max_fallback_units(&loaded), AtomicU64::new(0));
        Ok(Self { nodes, client, recorder, limits, key, fallback, charged })
    }

    /// Returns an iterator over the nodes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &WorldNode> {
        self.nodes.iter()
    }

    /// Returns whether `condition` is true for all nodes.
    pub(crate) async fn all(
        &self,
        condition: impl AsyncFn(&WorldNode) -> Result<bool, ChaosError>,
    ) -> Result<bool, ChaosError> {
        for node in &self.nodes {
            if !condition(node).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the sum of `count` over all nodes.
    pub(crate) async fn sum(
        &self,
        count: impl AsyncFn(&WorldNode) -> Result<u64, ChaosError>,
    ) -> Result<u64, ChaosError> {
        let mut sum = 0;
        for node in &self.nodes {
            sum += count(node).await?;
        }
        Ok(sum)
    }

    /// Returns the number of units that were refunded so far, for each client and limit.
    pub(crate) fn refunded_units(&self) -> Vec<u64> {
        let history = self.recorder.history();
        let mut units = BTreeMap::<_, u64>::new();
        for call in &history.calls {
            let Outcome::Answered(readings) = &call.outcome else { continue };
            for (charge, reading) in call.charges.iter().zip(readings.iter()) {
                *units.entry((charge.limit.name(), &charge.subject)).or_default() +=
                    reading.refunded;
            }
        }
        units.into_values().collect()
    }

    /// Sends a request to one node and records the node's answer. Returns `None` if the answer is
    /// missing or invalid.
    async fn check(
        &self,
        caller: usize,
        question: &Question,
    ) -> Option<(DecisionSource, Option<PendingRefund>)> {
        let limit = self.limits.iter().find(|limit| question.path[1..] == *limit.name())?;
        let client = SubjectValue::Clear(question.client.as_bytes());
        let subject = Subject::new([("client", client)], &self.key);
        let number = self.charged.fetch_add(1, Ordering::Relaxed);
        let id = ChargeId(u128::from(number));
        let operation = Operation::Charge { cost: Cost::ONE, id };
        let body = json!({ "request": {
            "method": "GET",
            "path": question.path,
            "headers": { CLIENT_HEADER: question.client },
        }});
        let serving = self.nodes[caller % self.nodes.len()].serving();
        let now = SystemClock.now();
        let issued = self.recorder.issue(now, &[Charge { limit, subject: &subject, operation }]);
        let answer = self.client.post(serving.http(), "/v1/check", &body).await.ok()?;
        let readings = readings(&answer, limit, now)?;
        let (source, position) =
            (readings.source(), readings.first().map(|reading| reading.position));
        issued.answered(&Ok::<_, StoreError>(readings));
        if source != DecisionSource::Store || !number.is_multiple_of(REFUND_INTERVAL) {
            return Some((source, None));
        }
        // A refusal has no receipt.
        let text = answer["receipt"].as_str().map(str::to_owned);
        let charged = text.zip(position).map(|(text, position)| {
            let limit = Arc::clone(limit);
            PendingRefund { limit, subject, id, position, text }
        });
        Some((source, charged))
    }
}

impl Nodes for WorldFleet {
    type Receipt = PendingRefund;

    async fn decide(
        &self,
        caller: usize,
        question: &Question,
    ) -> (DecisionSource, Option<PendingRefund>) {
        let checked = self.check(caller, question).await;
        checked.unwrap_or((DecisionSource::Failure(StoreError::Unavailable), None))
    }

    async fn refund(&self, caller: usize, charged: PendingRefund) {
        let PendingRefund { ref limit, ref subject, id, position, text } = charged;
        let operation =
            Operation::Refund { cost: Cost::ONE, position, id, deduplication: Deduplication::ById };
        let serving = self.nodes[caller % self.nodes.len()].serving();
        let issued =
            self.recorder.issue(SystemClock.now(), &[Charge { limit, subject, operation }]);
        let body = json!({ "receipt": text });
        // Without an answer, the result of the refund is unknown.
        let Ok(answer) = self.client.post(serving.http(), "/v1/refund", &body).await else {
            return;
        };
        if let Some(readings) = refunded(&answer, limit) {
            issued.answered(&Ok::<_, StoreError>(readings));
        }
    }

    fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    fn max_fallback_units(&self) -> u64 {
        self.fallback
    }

    fn max_wait(&self) -> Duration {
        Files::DEADLINE.saturating_add(TIMER_GRAIN)
    }
}

/// Parses the answer to a charge of one unit on `limit`, sent at `now`.
///
/// The answer reports resets in whole seconds, rounded up. All windows in this policy are a whole
/// number of seconds long, so two windows never have the same reset, and all answers in one window
/// have the same reset.
fn readings(answer: &Value, limit: &Limit, now: Timestamp) -> Option<Readings> {
    let source = source(answer)?;
    let [status] = &answer["statuses"].as_array()?[..] else {
        let is_failure = matches!(source, DecisionSource::Failure(_));
        return is_failure.then(|| Readings::new().with_source(source));
    };
    if status["name"] != limit.name() {
        return None;
    }
    let status_reading = status_reading(status)?;
    let admission = match (answer["admitted"].as_bool()?, answer["retry_after_ms"].as_u64()) {
        (true, _) => Admission::Now,
        (false, Some(wait)) => Admission::At(Timestamp::from_millis(now.as_millis() + wait)),
        (false, None) => Admission::Never,
    };
    let fits_again =
        if status_reading.used < limit.capacity() { Admission::Now } else { admission };
    Some(Readings::one(Reading { admission, fits_again, ..status_reading }).with_source(source))
}

/// Parses the answer to a refund. An answer without a status means that the window has ended.
fn refunded(answer: &Value, limit: &Limit) -> Option<Readings> {
    let [limit_status] = &answer["limits"].as_array()?[..] else { return None };
    if limit_status["name"] != limit.name() {
        return None;
    }
    let (refunded_units, status_reading) =
        (limit_status["refunded"].as_u64()?, status_reading(limit_status)?);
    // If units were returned, their window existed.
    let found = if refunded_units > 0 { StoredState::Present } else { status_reading.found };
    Some(Readings::one(Reading { refunded: refunded_units, found, ..status_reading }))
}

/// Parses the status of a limit, with the fields that the history checker needs. The position of
/// the reading is the reset, which identifies the fixed window to which a refund refers.
fn status_reading(limit_status: &Value) -> Option<Reading> {
    let used = limit_status["used"].as_u64()?;
    let full_reset_at = Timestamp::from_millis(limit_status["reset"].as_u64()?.checked_mul(1_000)?);
    let found = if used > 0 { StoredState::Present } else { StoredState::Missing };
    let position = ChargePosition(full_reset_at.as_millis());
    Some(Reading { used, full_reset_at, position, found, ..Reading::default() })
}

/// Parses the source of the decision in an answer.
fn source(answer: &Value) -> Option<DecisionSource> {
    let failure = || {
        Some(match answer["failure"].as_str()? {
            "full" => StoreError::Full,
            "unavailable" => StoreError::Unavailable,
            "timed_out" => StoreError::TimedOut,
            "corrupt" => StoreError::Corrupt,
            _ => return None,
        })
    };
    match answer["source"].as_str()? {
        "store" => Some(DecisionSource::Store),
        "deny_cache" => Some(DecisionSource::DenyCache),
        "overflow" => Some(DecisionSource::Overflow),
        "fallback" => Some(DecisionSource::Fallback(failure()?)),
        "failure" => Some(DecisionSource::Failure(failure()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hour() -> Arc<Limit> {
        policy::policy(IN_MEMORY).unwrap().policy.limits()[0].limit.clone()
    }

    #[test]
    fn an_answer_becomes_what_the_judge_reads() {
        let now = Timestamp::from_millis(5_000);
        let status = json!({ "name": "hour", "used": 20, "reset": 9 });
        let refused = json!({
            "admitted": false, "source": "store", "statuses": [status], "retry_after_ms": 3_500,
        });
        let limit_status = readings(&refused, &hour(), now).unwrap();
        assert_eq!((limit_status[0].used, limit_status[0].full_reset_at.as_millis()), (20, 9_000));
        assert_eq!(limit_status[0].admission, Admission::At(Timestamp::from_millis(8_500)));
        assert_eq!(limit_status.source(), DecisionSource::Store);
        let fallback = json!({
            "admitted": true, "source": "fallback", "failure": "unavailable",
            "statuses": [{ "name": "hour", "used": 1, "reset": 9 }],
        });
        let limit_status = readings(&fallback, &hour(), now).unwrap();
        assert!(limit_status.all_admitted());
        assert_eq!(limit_status.source(), DecisionSource::Fallback(StoreError::Unavailable));
        let back = json!({ "outcome": "refunded", "limits": [
            { "refunded": 1, "name": "hour", "used": 4, "reset": 9 },
        ]});
        let limit_status = refunded(&back, &hour()).unwrap();
        assert_eq!((limit_status[0].refunded, limit_status[0].used), (1, 4));
        assert!(refunded(&json!({ "outcome": "expired", "limits": [] }), &hour()).is_none());
    }

    #[test]
    fn what_is_no_verdict_is_none() {
        let now = Timestamp::EPOCH;
        let nobody = json!({ "admitted": true, "source": "failure", "failure": "timed_out", "statuses": [] });
        assert!(readings(&nobody, &hour(), now).is_some());
        let other = json!({ "name": "second", "used": 1, "reset": 9 });
        for answer in [
            json!({}),
            json!({ "admitted": true, "source": "store", "statuses": [] }),
            json!({ "admitted": true, "source": "store", "statuses": [other] }),
        ] {
            assert!(readings(&answer, &hour(), now).is_none(), "{answer}");
        }
    }
}
