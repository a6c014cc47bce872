//! Limits of which nodes take parts in advance: nodes that die and nodes that end. What their clients
//! are told is judged as one history.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;

use tollgate::core::algo::{Anchor, FixedWindow};
use tollgate::core::{
    Algorithm, Ask, Charge, ChargeId, Cost, Fit, Found, Limit, LimitMode, Mark, Millis, Reading,
    Readings, Subject, Timestamp, Value,
};
use tollgate::store::leased::{LeaseTerms, refused_early_at_most};
use tollgate::{Clock, SystemClock};
use tollgate_conformance::history::{Allowance, Outcome, Recorder, Report};
use tollgate_conformance::{Figure, PlainHash, assert_held};

use crate::fleet::Fleet;
use crate::world::{Answer, Proxy};

const QUOTA: u64 = 2_000;
const NODES: u32 = 2;

/// What each node admits before one of them is gone, of which it has taken more in advance.
const BEFORE: u64 = 400;

const CLIENTS: usize = 4;

#[tokio::test]
async fn a_node_that_is_killed_leaves_at_most_its_lease_unused() {
    let fleet = Fleet::start().await;
    let told = Arc::new(Told::new());
    let [dying, other] = hot_nodes(&fleet, &told).await;
    // By SIGKILL.
    drop(dying);
    let by_other = drained(&other, &told);
    let admitted = 2 * BEFORE + by_other;
    let report = told.judged();
    println!("{report}");
    assert_held(&[
        Figure::bites("units that the other one admitted after a node was killed", by_other),
        Figure::at_most("units above the limit", admitted.saturating_sub(QUOTA), 0),
        Figure::at_most(
            "units left at its refusal",
            QUOTA.saturating_sub(admitted),
            told.unused_at_most(),
        ),
        Figure::at_most("answers that no sound store gives", report.violated, 0),
    ]);
}

#[tokio::test]
async fn a_node_that_is_told_to_end_gives_its_lease_back() {
    let fleet = Fleet::start().await;
    let told = Arc::new(Told::new());
    let [ending, other] = hot_nodes(&fleet, &told).await;
    let ending = Arc::into_inner(ending).expect("its clients have ended");
    let (said, code) = ending.terminate();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(2 * BEFORE + drained(&other, &told), QUOTA);
    told.judged().assert_sound();
}

/// Two nodes that are both hot.
async fn hot_nodes(fleet: &Fleet, told: &Arc<Told>) -> [Arc<Proxy>; 2] {
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
        let (node, told) = (Arc::clone(&nodes[number % 2]), Arc::clone(told));
        let asks = BEFORE as usize / CLIENTS;
        thread::spawn(move || (0..asks).all(|_| told.ask(&node) == 200))
    };
    let clients: Vec<_> = (0..2 * CLIENTS).map(client).collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap()), "far from the limit");
    nodes
}

/// What `node` admits until it refuses.
fn drained(node: &Proxy, told: &Told) -> u64 {
    (0..=QUOTA).find(|_| told.ask(node) == 429).expect("no more than the quota")
}

/// What the clients of all nodes were told.
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

    /// One request, and its status.
    fn ask(&self, node: &Proxy) -> u16 {
        let ask = Ask::Take { cost: Cost::ONE, id: ChargeId(0) };
        let charge = Charge { limit: &self.limit, subject: &self.subject, ask };
        let issued = self.recorder.issue(SystemClock.now(), &[charge]);
        let answer = node.get("/", &["authorization: Bearer hot"]);
        issued.ended(Outcome::Answered(Readings::one(reading(&answer))));
        answer.status
    }

    /// With what the other node may have unused at any time.
    fn judged(&self) -> Report {
        let allowance = Allowance { leased: self.unused_at_most(), ..Allowance::default() };
        self.recorder.history().check(allowance)
    }

    fn unused_at_most(&self) -> u64 {
        let terms = LeaseTerms::for_nodes(NonZeroU32::new(NODES).unwrap());
        refused_early_at_most(NODES.into(), terms.unused_at_most(&self.limit))
    }
}

/// What an answer's fields say of the limit.
fn reading(answer: &Answer) -> Reading {
    let number = |name: &str| answer.field(name).parse::<u64>().unwrap();
    let whole_at = Timestamp::from_millis(number("x-ratelimit-reset") * 1_000);
    Reading {
        fit: if answer.status == 200 { Fit::Now } else { Fit::At(whole_at) },
        used: number("x-ratelimit-used"),
        whole_at,
        mark: Mark(whole_at.as_millis()),
        found: Found::State,
        ..Reading::default()
    }
}
