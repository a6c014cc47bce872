//! Quota leases: nodes that crash and nodes that shut down. The responses to their clients are
//! checked as one history.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;

use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::{
    Admission, Algorithm, Charge, ChargeId, ChargePosition, Cost, Limit, LimitMode, Millis,
    Operation, Reading, Readings, StoredState, Subject, Timestamp, Value,
};
use tollgate::{Clock, SystemClock};
use tollgate_conformance::history::{Allowance, Outcome, Recorder, Report};
use tollgate_conformance::{Figure, PlainHash, assert_held};
use tollgate_stores::quota_lease::{LeaseConfig, max_early_refusal};

use crate::redis::fleet::Fleet;
use crate::support::world::{Answer, Proxy};

const QUOTA: u64 = 2_000;
const NODES: u32 = 2;

/// The number of requests that each node admits before one node is stopped. The node that is
/// stopped then holds a larger lease than at its start.
const BEFORE: u64 = 400;

const CLIENTS: usize = 4;

#[tokio::test]
async fn a_node_that_is_killed_leaves_at_most_its_lease_unused() {
    let fleet = Fleet::start().await;
    let response = Arc::new(Told::new());
    let [dying, other] = hot_nodes(&fleet, &response).await;
    // Dropping the node kills its process with SIGKILL.
    drop(dying);
    let by_other = drained(&other, &response);
    let admitted = 2 * BEFORE + by_other;
    let report = response.check();
    println!("{report}");
    assert_held(&[
        Figure::fault_seen("units that the other one admitted after a node was killed", by_other),
        Figure::at_most("units above the limit", admitted.saturating_sub(QUOTA), 0),
        Figure::at_most(
            "units left at its refusal",
            QUOTA.saturating_sub(admitted),
            response.max_unused_units(),
        ),
        Figure::at_most("answers that no sound store gives", report.violated, 0),
    ]);
}

#[tokio::test]
async fn a_node_that_is_reported_to_end_gives_its_lease_back() {
    let fleet = Fleet::start().await;
    let response = Arc::new(Told::new());
    let [ending, other] = hot_nodes(&fleet, &response).await;
    let ending = Arc::into_inner(ending).expect("its clients have ended");
    let (described, code) = ending.terminate();
    assert_eq!(code, Some(0), "{described}");
    assert_eq!(2 * BEFORE + drained(&other, &response), QUOTA);
    response.check().assert_sound();
}

/// Starts two nodes, which both take leases.
async fn hot_nodes(fleet: &Fleet, response: &Arc<Told>) -> [Arc<Proxy>; 2] {
    let policy = fleet.policy(
        &format!(
            "limits: {{ hot: {{ quota: {QUOTA}, window: 1h, per: token, mode: leased }} }}\n\
             rules: [{{ limits: hot }}]\n\
             answers: {{ headers: github }}\n"
        ),
        &format!("deadline: 10s, nodes: {NODES}"),
    );
    let nodes = [Proxy::start(&policy), Proxy::start(&policy)].map(Arc::new);
    let client = |number: usize| {
        let (node, response) = (Arc::clone(&nodes[number % 2]), Arc::clone(response));
        let requests = BEFORE as usize / CLIENTS;
        thread::spawn(move || (0..requests).all(|_| response.send(&node) == 200))
    };
    let clients: Vec<_> = (0..2 * CLIENTS).map(client).collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap()), "far from the limit");
    nodes
}

/// Returns the number of requests that `node` admits until it refuses.
fn drained(node: &Proxy, response: &Told) -> u64 {
    (0..=QUOTA).find(|_| response.send(node) == 429).expect("no more than the quota")
}

/// The responses to the clients of all nodes.
struct Told {
    recorder: Recorder,
    limit: Limit,
    subject: Subject,
}

impl Told {
    fn new() -> Self {
        let window = FixedWindow::new(QUOTA, Millis::from_secs(3_600), Anchor::FirstRequest);
        let limit = Limit::new("hot", Algorithm::FixedWindow(window.unwrap())).unwrap();
        Self {
            recorder: Recorder::default(),
            limit: limit.with_mode(LimitMode::Leased).unwrap(),
            subject: Subject::new([("token", Value::Clear(b"hot"))], &PlainHash),
        }
    }

    /// Sends one request and returns its status.
    fn send(&self, node: &Proxy) -> u16 {
        let fetch = Operation::Charge { cost: Cost::ONE, id: ChargeId(0) };
        let charge = Charge { limit: &self.limit, subject: &self.subject, operation: fetch };
        let issued = self.recorder.issue(SystemClock.now(), &[charge]);
        let answer = node.get("/", &["authorization: Bearer hot"]);
        issued.ended(Outcome::Answered(Readings::one(reading(&answer))));
        answer.status
    }

    /// Checks the history of all responses. The check allows for the unused lease that the other
    /// node may have at any time.
    fn check(&self) -> Report {
        let allowance = Allowance { leased: self.max_unused_units(), ..Allowance::default() };
        self.recorder.history().check(allowance)
    }

    fn max_unused_units(&self) -> u64 {
        let terms = LeaseConfig::for_nodes(NonZeroU32::new(NODES).unwrap());
        max_early_refusal(NODES.into(), terms.max_unused_units(&self.limit))
    }
}

/// Returns the status of the limit from a response's header fields.
fn reading(answer: &Answer) -> Reading {
    let number = |name: &str| answer.field(name).parse::<u64>().unwrap();
    let full_reset_at = Timestamp::from_millis(number("x-ratelimit-reset") * 1_000);
    Reading {
        admission: if answer.status == 200 { Admission::Now } else { Admission::At(full_reset_at) },
        used: number("x-ratelimit-used"),
        full_reset_at,
        position: ChargePosition(full_reset_at.as_millis()),
        found: StoredState::Present,
        ..Reading::default()
    }
}
