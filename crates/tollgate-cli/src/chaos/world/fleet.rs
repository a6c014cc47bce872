//! The nodes of the world that changes, asked at their HTTP doors, and the record of their answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tollgate::core::{
    Ask, Charge, ChargeId, Cost, Fit, Found, Limit, Mark, Reading, Readings, Repeats, StoreError,
    Subject, Timestamp, Value as SubjectValue,
};
use tollgate::store::deadline::TIMER_GRAIN;
use tollgate::{Clock, HashKey, Source, SystemClock};
use tollgate_conformance::history::{Outcome, Recorder};

use super::client::NodeClient;
use super::files::Files;
use super::node::WorldNode;
use crate::chaos::error::ChaosError;
use crate::chaos::fleet::admitted_alone_at_most;
use crate::chaos::nodes::Nodes;
use crate::chaos::policy::{self, CLIENT_HEADER, NODES};
use crate::chaos::question::Question;
use crate::chaos::site::Site;

/// One charge in so many is given back, as that of an answer that had not changed.
const GIVEN_BACK: u64 = 7;
/// The word for a store that is not opened: the limits alone are of interest.
const IN_MEMORY: &str = "{ memory: {} }";

/// Processes that share their limits.
#[derive(Debug)]
pub(crate) struct WorldFleet {
    nodes: Vec<WorldNode>,
    client: NodeClient,
    recorder: Arc<Recorder>,
    limits: Vec<Arc<Limit>>,
    /// Names the subjects of the record, which leave this process as little as it does.
    key: HashKey,
    alone: u64,
    /// Charges so far, which are numbered in the record.
    charged: AtomicU64,
}

/// A charge that is given back.
#[derive(Debug)]
pub(crate) struct Charged {
    limit: Arc<Limit>,
    subject: Subject,
    id: ChargeId,
    mark: Mark,
    /// The receipt, as the node wrote it.
    text: String,
}

impl WorldFleet {
    /// Starts all nodes under the policy of this `text`.
    pub(crate) async fn start(site: &Site, text: &str) -> Result<Self, ChaosError> {
        let (client, mut nodes) = (NodeClient::new(), Vec::new());
        for _ in 0..NODES {
            nodes.push(WorldNode::start(client.clone(), site.room()?, text).await?);
        }
        let loaded = policy::policy(IN_MEMORY)?;
        let limits = loaded.policy.limits().iter();
        let limits = limits.map(|limit| Arc::clone(&limit.limit)).collect();
        let (recorder, key) = (Arc::<Recorder>::default(), HashKey::random());
        let (alone, charged) = (admitted_alone_at_most(&loaded), AtomicU64::new(0));
        Ok(Self { nodes, client, recorder, limits, key, alone, charged })
    }

    /// Each node.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &WorldNode> {
        self.nodes.iter()
    }

    /// Whether `condition` holds for all nodes.
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

    /// What all nodes count together.
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

    /// Units that each client of each limit gave back so far.
    pub(crate) fn given_back(&self) -> Vec<u64> {
        let history = self.recorder.history();
        let mut units = BTreeMap::<_, u64>::new();
        for call in &history.calls {
            let Outcome::Answered(told) = &call.outcome else { continue };
            for (asked, reading) in call.charges.iter().zip(told.iter()) {
                *units.entry((asked.limit.name(), &asked.subject)).or_default() +=
                    reading.given_back;
            }
        }
        units.into_values().collect()
    }

    /// Asks one node, and records what it told. `None` if it told nothing that makes sense.
    async fn asked(&self, caller: usize, question: &Question) -> Option<(Source, Option<Charged>)> {
        let limit = self.limits.iter().find(|limit| question.path[1..] == *limit.name())?;
        let client = SubjectValue::Clear(question.client.as_bytes());
        let subject = Subject::new([("client", client)], &self.key);
        let number = self.charged.fetch_add(1, Ordering::Relaxed);
        let id = ChargeId(u128::from(number));
        let ask = Ask::Take { cost: Cost::ONE, id };
        let body = json!({ "request": {
            "method": "GET",
            "path": question.path,
            "headers": { CLIENT_HEADER: question.client },
        }});
        let serving = self.nodes[caller % self.nodes.len()].serving();
        let now = SystemClock.now();
        let issued = self.recorder.issue(now, &[Charge { limit, subject: &subject, ask }]);
        let answer = self.client.post(serving.http(), "/v1/check", &body).await.ok()?;
        let readings = readings(&answer, limit, now)?;
        let (source, mark) = (readings.source(), readings.first().map(|reading| reading.mark));
        issued.answered(&Ok::<_, StoreError>(readings));
        if source != Source::Store || !number.is_multiple_of(GIVEN_BACK) {
            return Some((source, None));
        }
        // A refusal has none.
        let text = answer["receipt"].as_str().map(str::to_owned);
        let charged = text.zip(mark).map(|(text, mark)| {
            let limit = Arc::clone(limit);
            Charged { limit, subject, id, mark, text }
        });
        Some((source, charged))
    }
}

impl Nodes for WorldFleet {
    type Receipt = Charged;

    async fn ask(&self, caller: usize, question: &Question) -> (Source, Option<Charged>) {
        let asked = self.asked(caller, question).await;
        asked.unwrap_or((Source::Failure(StoreError::Unavailable), None))
    }

    async fn give_back(&self, caller: usize, charged: Charged) {
        let Charged { ref limit, ref subject, id, mark, text } = charged;
        let ask = Ask::Refund { cost: Cost::ONE, mark, id, repeats: Repeats::Guarded };
        let serving = self.nodes[caller % self.nodes.len()].serving();
        let issued = self.recorder.issue(SystemClock.now(), &[Charge { limit, subject, ask }]);
        let body = json!({ "receipt": text });
        // Where there is no answer, nobody knows what became of it.
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

    fn admitted_alone_at_most(&self) -> u64 {
        self.alone
    }

    fn answers_within(&self) -> Duration {
        Files::DEADLINE.saturating_add(TIMER_GRAIN)
    }
}

/// What an answer to a charge of one unit on `limit` told, which was asked at `now`.
///
/// Resets are told in whole seconds, rounded up. All windows here are whole seconds long, so that
/// what is apart stays apart, and what is one window has one reset.
fn readings(answer: &Value, limit: &Limit, now: Timestamp) -> Option<Readings> {
    let source = source(answer)?;
    let [standing] = &answer["standings"].as_array()?[..] else {
        let is_failure = matches!(source, Source::Failure(_));
        return is_failure.then(|| Readings::new().with_source(source));
    };
    if standing["name"] != limit.name() {
        return None;
    }
    let stands = stands(standing)?;
    let fit = match (answer["admitted"].as_bool()?, answer["retry_after_ms"].as_u64()) {
        (true, _) => Fit::Now,
        (false, Some(wait)) => Fit::At(Timestamp::from_millis(now.as_millis() + wait)),
        (false, None) => Fit::Never,
    };
    let again = if stands.used < limit.capacity() { Fit::Now } else { fit };
    Some(Readings::one(Reading { fit, again, ..stands }).with_source(source))
}

/// What an answer to a refund told; nothing of one whose window is over.
fn refunded(answer: &Value, limit: &Limit) -> Option<Readings> {
    let [told] = &answer["limits"].as_array()?[..] else { return None };
    if told["name"] != limit.name() {
        return None;
    }
    let (given_back, stands) = (told["given_back"].as_u64()?, stands(told)?);
    // What gave something back was there.
    let found = if given_back > 0 { Found::State } else { stands.found };
    Some(Readings::one(Reading { given_back, found, ..stands }))
}

/// How a limit stands, as far as the judge reads it. A fixed window is known by its reset, to which
/// refunds are held.
fn stands(told: &Value) -> Option<Reading> {
    let used = told["used"].as_u64()?;
    let whole_at = Timestamp::from_millis(told["reset"].as_u64()?.checked_mul(1_000)?);
    let found = if used > 0 { Found::State } else { Found::Nothing };
    let mark = Mark(whole_at.as_millis());
    Some(Reading { used, whole_at, mark, found, ..Reading::default() })
}

/// Who decided, by an answer's word.
fn source(answer: &Value) -> Option<Source> {
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
        "store" => Some(Source::Store),
        "remembered" => Some(Source::Remembered),
        "fallback" => Some(Source::Fallback(failure()?)),
        "failure" => Some(Source::Failure(failure()?)),
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
        let standing = json!({ "name": "hour", "used": 20, "reset": 9 });
        let refused = json!({
            "admitted": false, "source": "store", "standings": [standing], "retry_after_ms": 3_500,
        });
        let told = readings(&refused, &hour(), now).unwrap();
        assert_eq!((told[0].used, told[0].whole_at.as_millis()), (20, 9_000));
        assert_eq!(told[0].fit, Fit::At(Timestamp::from_millis(8_500)));
        assert_eq!(told.source(), Source::Store);
        let alone = json!({
            "admitted": true, "source": "fallback", "failure": "unavailable",
            "standings": [{ "name": "hour", "used": 1, "reset": 9 }],
        });
        let told = readings(&alone, &hour(), now).unwrap();
        assert!(told.all_fit());
        assert_eq!(told.source(), Source::Fallback(StoreError::Unavailable));
        let back = json!({ "outcome": "given_back", "limits": [
            { "given_back": 1, "name": "hour", "used": 4, "reset": 9 },
        ]});
        let told = refunded(&back, &hour()).unwrap();
        assert_eq!((told[0].given_back, told[0].used), (1, 4));
        assert!(refunded(&json!({ "outcome": "expired", "limits": [] }), &hour()).is_none());
    }

    #[test]
    fn what_is_no_verdict_is_none() {
        let now = Timestamp::EPOCH;
        let nobody = json!({ "admitted": true, "source": "failure", "failure": "timed_out", "standings": [] });
        assert!(readings(&nobody, &hour(), now).is_some());
        let other = json!({ "name": "second", "used": 1, "reset": 9 });
        for answer in [
            json!({}),
            json!({ "admitted": true, "source": "store", "standings": [] }),
            json!({ "admitted": true, "source": "store", "standings": [other] }),
        ] {
            assert!(readings(&answer, &hour(), now).is_none(), "{answer}");
        }
    }
}
