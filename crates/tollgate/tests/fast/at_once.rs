//! Decisions without a future are those of `decide`.

use std::sync::Arc;

use tollgate::limiter::{Decision, Reservation};
use tollgate::model::{Millis, Policy, RequestAttributes, Timestamp};
use tollgate::observe::{Decisions, Reservations};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideStore as _, OverrideTarget,
};
use tollgate::store::Memory;
use tollgate::{DecisionRequest, HashKey, Limiter, Revision};

use crate::user::User;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

const POLICY: &str = "
subjects:
  user: { header: x-user }
limits:
  few: { quota: 3, window: 1h, per: user }
  many: { quota: 50, window: 1h, per: user }
  rough: { algorithm: sliding_window, quota: 5, window: 1m, per: user, count_refused: true }
  flight: { algorithm: concurrency, quota: 2, per: user }
  failures: { quota: 2, window: 1h, per: user, count: { status: [401] } }
  half: { quota: 2, window: 1h, per: user, enforce: 50% }
  tried: { quota: 2, window: 1h, per: user, candidate: { quota: 1 } }
rules:
  - { name: one, match: { path: /one }, limits: few }
  - { name: three, match: { path: /three }, limits: [few, many, rough] }
  - { name: permits, match: { path: /permits }, limits: [many, flight] }
  - { name: failures, match: { path: /failures }, limits: [many, failures] }
  - { name: nothing, match: { path: /nothing }, limits: [] }
  - { name: half, match: { path: /half }, limits: half }
  - { name: tried, match: { path: /tried }, limits: tried }
  - { name: shadow, match: { path: /shadow }, limits: few, mode: shadow }
  - { name: later, match: { path: /later }, limits: few, charge: on_completion }
  - { name: nothing-later, match: { path: /nothing-later }, limits: [], charge: on_completion }
  - { name: queued, match: { path: /queued }, limits: flight, queue: { wait: 1s } }
";

/// The paths whose requests are decided at once.
const AT_ONCE: [&str; 6] =
    ["/one", "/three", "/permits", "/failures", "/nothing", "/nothing-later"];

/// The paths whose requests need another store call, or are charged later.
const LATER: [&str; 3] = ["/tried", "/shadow", "/later"];

struct Node {
    limiter: Limiter<Memory>,
    decisions: Arc<Decisions>,
    permits: Arc<Reservations>,
}

impl Node {
    fn new() -> Self {
        let policy: Policy = tollgate_policy::parse("policy.yaml", POLICY).unwrap().policy;
        let decisions = Arc::new(Decisions::new(&policy));
        let permits = Arc::new(Reservations::new(&policy));
        let limiter = Limiter::new(policy, Memory::default())
            .with_key(HashKey::from_secret(b"of the tests"))
            .with_observer((Arc::clone(&decisions), Arc::clone(&permits)));
        Self { limiter, decisions, permits }
    }

    fn request<'p>(
        &self,
        now: Timestamp,
        policy: &'p Arc<Revision>,
        path: &str,
        user: &str,
    ) -> DecisionRequest<'p> {
        let headers = User(user);
        let (method, headers) = ("GET", &headers);
        let attributes =
            RequestAttributes { method, path, query: None, host: None, peer: None, headers };
        DecisionRequest::new(now, policy, self.limiter.plan_at(now, policy, &attributes))
    }

    fn at_once(&self, now: Timestamp, path: &str, user: &str) -> Option<Decision> {
        let policy = self.limiter.policy();
        self.limiter.decide_at_once(&mut self.request(now, &policy, path, user))
    }

    async fn decide(&self, now: Timestamp, path: &str, user: &str) -> Decision {
        let policy = self.limiter.policy();
        self.limiter.decide(self.request(now, &policy, path, user)).await
    }
}

/// Returns everything of `decision` except random ids.
fn content(decision: &Decision) -> String {
    let Decision { rules, evaluation, shadow, candidates, overrides, source, .. } = decision;
    let Decision { on_failure, charge, receipt, reserved, pending, positions, .. } = decision;
    // The id is the first field of a receipt.
    let charged = receipt.as_ref().map(|receipt| format!("{receipt:?}"));
    let charged = charged.map(|text| text.split_once("entries").unwrap().1.to_owned());
    format!(
        "{rules:?} {evaluation:?} {shadow:?} {candidates:?} {overrides:?} {source:?} {on_failure:?} \
         {charge:?} {charged:?} {} {} {positions:?} {:?}",
        reserved.is_some(),
        pending.is_some(),
        decision.conditional,
    )
}

#[tokio::test]
async fn decisions_at_once_are_those_of_decide() {
    let (one, other) = (Node::new(), Node::new());
    let mut refused = 0;
    for round in 0..40 {
        let now = START.after(Millis::new(round * 7_919));
        for path in AT_ONCE {
            let user = format!("user-{}", round % 3);
            let decision = one.at_once(now, path, &user).expect(path);
            let expected = other.decide(now, path, &user).await;
            assert_eq!(content(&decision), content(&expected), "{path} in round {round}");
            refused += u64::from(!decision.is_admitted());
            if round % 5 == 0 {
                for (node, decision) in [(&one, decision), (&other, expected)] {
                    if let Some(receipt) = decision.receipt {
                        node.limiter.refund_at(now, receipt).await.unwrap();
                    }
                }
            }
        }
    }
    assert!((20..180).contains(&refused), "{refused} of 240 requests are refused");
    assert_eq!(one.decisions.totals(), other.decisions.totals());
    assert_eq!(one.decisions.limits(), other.decisions.limits());
    assert_eq!(one.permits.limits(), other.permits.limits());
}

#[tokio::test]
async fn a_request_that_cannot_be_decided_at_once_is_left_as_it_is() {
    let node = Node::new();
    let policy = node.limiter.policy();
    for path in LATER {
        let mut request = node.request(START, &policy, path, "ann");
        let plan = format!("{:?}", request.plan);
        assert!(node.limiter.decide_at_once(&mut request).is_none(), "{path}");
        assert_eq!(format!("{:?}", request.plan), plan, "{path}");
    }
    for path in ["/one", "/nothing-later"] {
        for reservation in [Reservation::Metered, Reservation::All(Millis::from_secs(1))] {
            let mut request = node.request(START, &policy, path, "ann");
            request.reservation = reservation;
            let is_decided = node.limiter.decide_at_once(&mut request).is_some();
            assert_eq!(is_decided, reservation == Reservation::Metered, "{path} {reservation:?}");
        }
    }
    let mut request = node.request(START, &policy, "/queued", "ann");
    request.queue = request.plan.queue();
    assert!(request.queue.is_some() && node.limiter.decide_at_once(&mut request).is_none());
    // Half of the subjects are enforced.
    let users: Vec<String> = (0..40).map(|user| format!("user-{user}")).collect();
    let decided = users.iter().filter(|user| node.at_once(START, "/half", user).is_some()).count();
    assert!((5..35).contains(&decided), "{decided} of 40 subjects are enforced");
    assert_eq!(node.decisions.totals().0.iter().sum::<u64>(), decided as u64 + 2);
}

#[tokio::test]
async fn an_override_is_never_left_out() {
    let node = Node::new();
    assert!(node.at_once(START, "/one", "ann").expect("no override").is_admitted());
    let target = OverrideScope { limit: Some("few".into()), target: OverrideTarget::AllSubjects };
    let expires_at = START.after(Millis::from_secs(60));
    let set = Override { target, effect: Effect::Blocked, expires_at, reason: "a test".into() };
    node.limiter.overrides().change(START, OverrideChange::Set(set)).await.unwrap();
    assert!(node.at_once(START, "/one", "ann").is_none());
    assert!(!node.decide(START, "/one", "ann").await.is_admitted());
}
