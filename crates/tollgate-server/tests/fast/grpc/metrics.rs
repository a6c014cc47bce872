//! The decisions that observers receive: one for each request.

use tollgate::observe::{Decider, RankBy};
use tollgate_server::grpc::proto::RateLimitRequest;

use crate::grpc::world::{START, World, counting, descriptor, giving_back, request};

/// Returns a listener with the domain `edge`, and the domain `each` with the same tree, which
/// charges each descriptor separately.
async fn world() -> World {
    let tree = "
    tree:
      - { key: one, limit: one }
      - { key: five, limit: five }
      - { key: dark, limit: tested, mode: shadow }
      - { key: quota, limit: one, mode: quota }
      - { key: shut, blocked: true }
      - { key: free, unlimited: true }";
    let policy = format!(
        "
limits:
  one:    {{ quota: 1, window: 1m, anchor: calendar }}
  five:   {{ quota: 5, window: 1m, anchor: calendar }}
  tested: {{ quota: 1, window: 1m, anchor: calendar }}
descriptors:
  - domain: edge{tree}
  - domain: each
    counting: each{tree}
"
    );
    World::new(&policy).await
}

impl World {
    /// Returns the number of admitted requests and of refused requests, and the deciders of the
    /// refusals.
    fn totals(&self) -> (u64, u64, Vec<&'static str>) {
        let (admitted, refused) = self.decisions.totals();
        let deciders = Decider::ALL.into_iter().filter(|decider| refused[*decider as usize] > 0);
        let deciders = deciders.map(Decider::name).collect();
        (admitted.iter().sum(), refused.iter().sum(), deciders)
    }

    /// Returns the counts of the limit `name`: its refusals, and the decisions in shadow mode that
    /// admitted and that refused.
    fn counts(&self, name: &str) -> (u64, u64, u64) {
        let limits = self.decisions.limits();
        let counts = limits.into_iter().find(|counts| *counts.limit == *name).unwrap();
        (counts.refusals.iter().sum(), counts.shadow_admitted, counts.shadow_refused)
    }

    /// Sends one request with the descriptors `texts` to the domain `domain`.
    async fn ask(&self, domain: &str, texts: &[&str]) {
        let descriptors = texts.iter().map(|text| descriptor(text)).collect();
        let domain = domain.to_owned();
        self.send(RateLimitRequest { domain, ..request(descriptors) }).await.unwrap();
    }
}

/// The bug: a descriptor in shadow mode that was over its limit was counted as a refused request,
/// and not as a decision in shadow mode.
#[tokio::test]
async fn descriptors_in_shadow_mode_were_counted_as_refusals() {
    let world = world().await;
    for texts in [&["dark=1"][..], &["dark=1"], &["five=1", "dark=1"], &["dark=1", "shut=1"]] {
        world.ask("edge", texts).await;
    }
    assert_eq!(world.totals(), (3, 1, vec!["deny_cache"]));
    assert_eq!(world.counts("tested"), (0, 1, 3));
    assert_eq!(world.top.ranked(RankBy::Refused, None, 10, START), []);
}

/// The bug: a quota group over its limit was counted as a refused request, even if another group
/// admitted the request.
#[tokio::test]
async fn requests_that_another_quota_group_admitted_were_counted_as_refusals() {
    for domain in ["edge", "each"] {
        let world = world().await;
        for admitted in 1..=2 {
            world.ask(domain, &["quota=1"]).await;
            world.ask(domain, &["quota=1", &format!("quota={}", admitted + 1)]).await;
        }
        // The second request for only the first group is refused.
        assert_eq!(world.totals(), (3, 1, vec!["store"]), "{domain}");
        assert_eq!(world.counts("one"), (1, 0, 0), "{domain}");
        world.ask(domain, &["quota=1", "quota=2"]).await;
        assert_eq!(world.totals(), (3, 2, vec!["store"]), "{domain}");
    }
}

/// The bug: requests that were refused without a charge were not counted.
#[tokio::test]
async fn refusals_without_a_charge_were_not_counted() {
    for domain in ["edge", "each"] {
        let world = world().await;
        world.ask(domain, &["shut=1"]).await;
        world.ask(domain, &["five=1", "shut=1"]).await;
        assert_eq!(world.totals(), (0, 2, vec!["deny_cache"]), "{domain}");
        assert_eq!(world.counts("five"), (0, 0, 0), "{domain}");
    }
    let world = world().await;
    world.decide(vec![counting("five=1", u64::MAX)]).await;
    assert_eq!(world.totals(), (0, 1, vec!["deny_cache"]));
    assert_eq!(world.counts("five"), (1, 0, 0));
    // The enforced part is refused because all quota groups are over their limits.
    world.decide(vec![descriptor("quota=1")]).await;
    world.decide(vec![descriptor("quota=1"), descriptor("five=1")]).await;
    assert_eq!(world.totals(), (1, 2, vec!["store", "deny_cache"]));
    assert_eq!(world.counts("one"), (1, 0, 0));
}

/// The bug: a request was counted once for each of its descriptors.
#[tokio::test]
async fn a_request_whose_descriptors_are_charged_separately_was_counted_several_times() {
    let world = world().await;
    let both = ["one=1", "five=1"];
    world.ask("each", &both).await;
    assert_eq!(world.totals(), (1, 0, vec![]));
    world.ask("each", &both).await;
    assert_eq!(world.totals(), (1, 1, vec!["store"]));
    assert_eq!((world.counts("one"), world.counts("five")), ((1, 0, 0), (0, 0, 0)));
    // Neither is a decision.
    world.ask("edge", &["free=1", "none=1"]).await;
    world.decide(vec![giving_back("five=1", 1)]).await;
    assert_eq!(world.totals(), (1, 1, vec!["store"]));
}
