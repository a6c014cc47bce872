//! Every primary is down: the fallback of each rule.

use crate::redis::fleet::Fleet;
use crate::support::world::Proxy;

#[tokio::test]
async fn without_any_shard_each_rule_does_as_it_says() {
    let mut fleet = Fleet::start().await;
    let proxy = Proxy::start(&fleet.policy(
        "limits: { core: { quota: 10, window: 1h, per: token } }\n\
         rules:\n\
         \x20 - { match: { path: /sign-in }, limits: core, on_failure: deny }\n\
         \x20 - { match: { path: /search }, limits: core, on_failure: allow }\n\
         \x20 - { limits: core }\n\
         answers: { headers: github }",
        "deadline: 10s, nodes: 2",
    ));
    let observed = "authorization: Bearer seen";
    for used in 1..=4 {
        assert_eq!(proxy.get("/", &[observed]).field("x-ratelimit-used"), used.to_string());
    }
    for server in fleet.primaries.iter_mut().chain(&mut fleet.replicas) {
        server.kill();
    }
    let stranger = "authorization: Bearer stranger";
    for _ in 0..20 {
        assert_eq!(proxy.get("/sign-in", &[stranger]).status, 503);
        assert_eq!(proxy.get("/search", &[stranger]).status, 200);
    }
    // Each of two nodes has half of the remaining units: of six units, and of all ten.
    assert_eq!(admitted(&proxy, observed), 3);
    assert_eq!(admitted(&proxy, stranger), 5);
    let refused = proxy.get("/", &[observed]);
    assert_eq!(refused.field("x-ratelimit-remaining"), "0", "{refused:?}");
}

fn admitted(proxy: &Proxy, token: &str) -> usize {
    let statuses: Vec<_> = (0..12).map(|_| proxy.get("/", &[token]).status).collect();
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    statuses.iter().filter(|status| **status == 200).count()
}
