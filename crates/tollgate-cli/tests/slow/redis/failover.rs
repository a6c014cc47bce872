//! A primary fails under load, and its replica is promoted.

use std::sync::Arc;

use tollgate_conformance::{Figure, assert_held};

use crate::redis::fleet::{Fleet, Form, in_every_form};
use crate::redis::load::{Load, used};
use crate::support::world::{Answer, Proxy};

const LIMITS: &str = "
limits: { core: { quota: 1_000_000, window: 1h, per: token } }
rules: [{ limits: core }]
answers: { headers: github }";

/// The requests in which each phase of an outage must occur.
const REQUESTS: usize = 400;

in_every_form! {
    a_primary_that_dies_under_load_fails_no_request
    the_replica_goes_on_from_what_was_replicated
}

async fn a_primary_that_dies_under_load_fails_no_request(form: Form) {
    let mut fleet = Fleet::start_in(form).await;
    let proxy = Arc::new(Proxy::start(&fleet.policy(LIMITS, "deadline: 10s")));
    let tokens = [fleet.token_on(0, &proxy).await, fleet.token_on(1, &proxy).await];
    fleet.primaries[0].is_followed().await;
    let load = Load::start(&proxy, &tokens);
    load.passes(REQUESTS);

    fleet.primaries[0].kill();
    load.passes(REQUESTS);
    let lost = proxy.wait_for_log("no primary answers");

    fleet.replicas[0].promote().await;
    let response = proxy.wait_for_log("connected to");
    assert!(response.contains(&fleet.replicas[0].url()), "{response}");
    load.passes(REQUESTS);

    let answers = load.stop();
    let failed = answers.iter().filter(|(_, answer)| answer.status != 200).count();
    // The other shard continued to count each request once.
    let used = used(&answers, 1);
    let once = used[0]..used[0] + used.len() as u64;
    let otherwise = used.iter().zip(once).filter(|(response, once)| *response != once).count();
    assert_held(&[
        Figure::fault_seen("primaries lost", lost.contains("shard=\"a\"").into()),
        Figure::at_most("requests that failed", failed as u64, 0),
        Figure::at_most("requests that the other shard did not count once", otherwise as u64, 0),
    ]);
}

async fn the_replica_goes_on_from_what_was_replicated(form: Form) {
    let mut fleet = Fleet::start_in(form).await;
    let proxy = Proxy::start(&fleet.policy(LIMITS, "deadline: 10s"));
    let token = fleet.token_on(0, &proxy).await;
    let used = |answer: &Answer| answer.field("x-ratelimit-used").to_owned();
    for expected in 2..=10 {
        assert_eq!(used(&proxy.get("/", &[&token])), expected.to_string());
    }
    let reset = proxy.get("/", &[&token]).field("x-ratelimit-reset").to_owned();
    fleet.primaries[0].is_followed().await;
    fleet.primaries[0].kill();
    fleet.replicas[0].promote().await;
    while !proxy.wait_for_log("connected to").contains(&fleet.replicas[0].url()) {}
    let answer = proxy.get("/", &[&token]);
    assert_eq!(answer.status, 200);
    assert_eq!((used(&answer), answer.field("x-ratelimit-reset")), ("12".into(), &*reset));
}
