//! A decision of GitHub's policy allocates nothing, from the request to the header fields.
//!
//! A separate test binary, because it counts the allocations of the whole process.

use std::alloc::System;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use cap::Cap;
use tollgate::headers::HeaderLines;
use tollgate::limiter::Workspace;
use tollgate::model::{Headers, RequestAttributes, Timestamp};
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

const POLICY: &str = include_str!("../../../policies/github.yaml");

struct Fields(&'static [(&'static str, &'static [u8])]);

impl Headers for Fields {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.value(name, index)
    }
}

static USER: Fields = Fields(&[
    ("user-agent", b"octokit-rest.js/22.0.0"),
    ("authorization", b"Bearer ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
]);
static STRANGER: Fields = Fields(&[("user-agent", b"octokit-rest.js/22.0.0")]);

/// The method, the path and the fields of requests for every rule that charges on arrival.
const REQUESTS: [(&str, &str, &Fields); 6] = [
    ("GET", "/repos/octocat/hello/issues", &STRANGER),
    ("GET", "/repos/octocat/hello/issues", &USER),
    ("GET", "/search/code", &USER),
    ("POST", "/graphql", &USER),
    ("POST", "/repos/octocat/hello/issues", &USER),
    ("DELETE", "/repos/octocat/hello", &USER),
];

fn attributes(
    (method, path, headers): (&'static str, &'static str, &'static Fields),
) -> RequestAttributes<'static> {
    let peer = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
    RequestAttributes { method, path, query: None, host: Some("api.example.com"), peer, headers }
}

fn limiter() -> Limiter<Memory> {
    let policy = tollgate_policy::parse("github.yaml", POLICY).unwrap().policy;
    let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
    Limiter::new(policy, Memory::default()).with_clock(clock)
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the store in memory answers at once"),
    }
}

/// Makes a decision, and returns the bytes that it allocated. Releases its permit.
fn decide(
    limiter: &Limiter<Memory>,
    attributes: &RequestAttributes<'_>,
    room: &mut (Workspace, HeaderLines),
) -> usize {
    let (workspace, lines) = room;
    let policy = limiter.policy();
    let before = ALLOCATED.total_allocated();
    lines.clear();
    let decision = limiter.check_now(&policy, attributes, workspace).unwrap().unwrap();
    decision.write_headers(&policy.answers().headers, lines);
    let allocated = ALLOCATED.total_allocated() - before;
    if let Some(receipt) = decision.receipt() {
        at_once(limiter.refund(receipt.split_permits().1)).unwrap();
    }
    allocated
}

const ROUNDS: usize = 80;

/// One test, because it counts the allocations of the whole process.
#[test]
fn a_decision_of_githubs_policy_allocates_nothing() {
    decisions_allocate_nothing();
    immediate_decisions_are_those_of_check();
}

fn decisions_allocate_nothing() {
    let (limiter, mut room) = (limiter(), Default::default());
    let mut first = 0;
    for request in REQUESTS {
        first += decide(&limiter, &attributes(request), &mut room);
    }
    assert!(first > 0, "the first decisions allocate entries");
    // Some of these are refused: 60 requests an hour without a token, 30 searches a minute.
    for round in 0..ROUNDS {
        for request in REQUESTS {
            let allocated = decide(&limiter, &attributes(request), &mut room);
            assert_eq!(allocated, 0, "{} in round {round}", request.1);
        }
    }
}

fn immediate_decisions_are_those_of_check() {
    let (now, later) = (limiter(), limiter());
    let (mut room, policy) = (<(Workspace, HeaderLines)>::default(), now.policy());
    for round in 0..100 {
        for request in REQUESTS {
            let attributes = attributes(request);
            let (workspace, lines) = &mut room;
            lines.clear();
            let one = now.check_now(&policy, &attributes, workspace).unwrap().unwrap();
            let mut other = at_once(later.check(&attributes));
            assert_eq!(one.is_admitted(), other.is_admitted(), "{round}");
            assert_eq!(*one.evaluation(), other.evaluation, "{round}");
            assert_eq!(one.source(), other.source);
            one.write_headers(&policy.answers().headers, lines);
            let mut expected = HeaderLines::default();
            tollgate::headers::write(&policy.answers().headers, &other.evaluation, &mut expected);
            assert_eq!(lines.as_str(), expected.as_str());
            // Both decisions return a receipt for the same charges, which releases the permits and
            // refunds the units.
            let (one, other) = (one.receipt(), other.receipt.take());
            assert_eq!(one.is_some(), other.is_some(), "{round}");
            for (limiter, receipt) in [(&now, one), (&later, other)] {
                let Some(receipt) = receipt else { continue };
                let (counted, permits) = receipt.split_permits();
                at_once(limiter.refund(permits)).unwrap();
                if round % 3 == 0 {
                    at_once(limiter.refund(counted)).unwrap();
                }
            }
        }
    }
}
