//! The status of each descriptor, in the text form of `printed`.

use tollgate::overrides::Effect;
use tollgate_server::grpc::proto::{Entry, RateLimitDescriptor, RateLimitOverride, RateLimitUnit};

use crate::grpc::world::{World, counting, descriptor, giving_back, printed, request};

const POLICY: &str = "
limits:
  minute:  { quota: 3, window: 1m, anchor: calendar }
  odd:     { quota: 5, window: 90s }
  huge:    { quota: 9007199254740991, window: 1h, anchor: calendar }
  hidden:  { quota: 2, window: 1d, anchor: calendar, visible: false }
  bucket:  { algorithm: token_bucket, quota: 60, window: 1m, burst: 2 }
descriptors:
  - domain: edge
    tree:
      - { key: a, limit: minute }
      - { key: odd, limit: odd, name: odd-one }
      - { key: huge, limit: huge }
      - { key: hidden, limit: hidden }
      - { key: bucket, limit: bucket }
      - { key: free, unlimited: true }
      - { key: shut, blocked: true, name: shut-down }
      - { key: dark, limit: minute, mode: shadow }
      - { key: vip, unlimited: true, replaces: odd-one }
      - key: deep
        descriptors:
          - { key: path, value: /search*, limit: minute, share_threshold: true }
answers: { headers: [github] }
";

#[tokio::test]
async fn each_descriptor_has_its_status() {
    let world = World::new(POLICY).await;
    let all = ["a=1", "nothing", "free=1", "odd=1", "huge=1", "hidden=1", "bucket=1", "deep=1"];
    let answer = world.decide(all.map(descriptor).into()).await;
    let expected = "OK: OK minute 3/MINUTE left 2 in 50s; OK; OK left 4294967295; \
                    OK odd-one 5 left 4 in 90s; OK huge 4294967295/HOUR left 4294967295 in 2750s; \
                    OK left 1 in 6350s; OK bucket 60/MINUTE left 1 in 1s; OK";
    assert_eq!(printed(&answer), expected);
}

#[tokio::test]
async fn a_request_that_one_descriptor_refuses_is_counted_on_none() {
    let world = World::new(POLICY).await;
    let both = || vec![descriptor("a=1"), descriptor("odd=1")];
    for left in [2, 1, 0] {
        let answer = world.decide(both()).await;
        assert!(printed(&answer).starts_with(&format!("OK: OK minute 3/MINUTE left {left} ")));
    }
    let refused = world.decide(both()).await;
    let expected = "OVER: OVER minute 3/MINUTE left 0 in 50s; OK odd-one 5 left 2 in 90s";
    assert_eq!(printed(&refused), expected);
    let odd = world.decide(vec![descriptor("odd=1")]).await;
    assert_eq!(printed(&odd), "OK: OK odd-one 5 left 1 in 90s");

    // Another value has another counter, and the next minute is a new window.
    assert!(printed(&world.decide(vec![descriptor("a=2")]).await).starts_with("OK: "));
    world.later(49_999);
    assert_eq!(
        printed(&world.decide(vec![descriptor("a=1")]).await),
        "OVER: OVER minute 3/MINUTE left 0 in 1s"
    );
    world.later(1);
    assert_eq!(
        printed(&world.decide(vec![descriptor("a=1")]).await),
        "OK: OK minute 3/MINUTE left 2 in 60s"
    );
}

#[tokio::test]
async fn hits_are_the_descriptors_own_or_else_the_requests() {
    let world = World::new(POLICY).await;
    let mut requested =
        request(vec![descriptor("odd=1"), counting("a=1", 1), counting("huge=1", 0)]);
    requested.hits_addend = 4;
    let answer = world.send(requested).await.unwrap();
    let expected = "OK: OK odd-one 5 left 1 in 90s; OK minute 3/MINUTE left 2 in 50s; \
                    OK huge 4294967295/HOUR left 4294967295 in 2750s";
    assert_eq!(printed(&answer), expected);

    // 0 hits only query whether one hit is left.
    let peek = || vec![counting("odd=1", 0)];
    assert_eq!(printed(&world.decide(peek()).await), "OK: OK odd-one 5 left 1 in 90s");
    world.decide(vec![descriptor("odd=1")]).await;
    assert_eq!(printed(&world.decide(peek()).await), "OVER: OVER odd-one 5 left 0 in 90s");
    // The same descriptor twice costs the sum, and both have the status after it.
    let twice = world.decide(vec![descriptor("a=1"), descriptor("a=1")]).await;
    let one = "OK minute 3/MINUTE left 0 in 50s";
    assert_eq!(printed(&twice), format!("OK: {one}; {one}"));
}

#[tokio::test]
async fn more_than_a_limit_holds_is_never_admitted() {
    let world = World::new(POLICY).await;
    for hits in [6, u64::from(u32::MAX), 1 << 53, 1 << 63, u64::MAX] {
        let answer = world.decide(vec![counting("odd=1", hits)]).await;
        assert_eq!(printed(&answer), "OVER: OVER odd-one 5 left 5 in 90s", "{hits}");
        assert!(answer.response_headers_to_add.iter().all(|field| field.key != "retry-after"));
    }
    // A number above 2^53 - 1 is refused by every limit, however large.
    for (hits, expected) in [((1 << 53) - 1, "OK"), (1 << 53, "OVER"), (u64::MAX, "OVER")] {
        let fresh = format!("huge={hits}");
        let answer = world.decide(vec![counting(&fresh, hits)]).await;
        assert!(printed(&answer).starts_with(&format!("{expected}: {expected} huge ")), "{hits}");
    }
    let free =
        world.decide(vec![counting("free=1", u64::MAX), counting("nothing", u64::MAX)]).await;
    assert_eq!(printed(&free), "OK: OK left 4294967295; OK");
}

#[tokio::test]
async fn what_is_refunded_can_be_taken_again() {
    let world = World::new(POLICY).await;
    world.decide(vec![counting("a=1", 3)]).await;
    let answer = world.decide(vec![giving_back("a=1", 2)]).await;
    assert_eq!(printed(&answer), "OK: OK minute 3/MINUTE left 2 in 50s");
    // Never more than was charged, and never into the next window.
    for hits in [5, u64::MAX] {
        let answer = world.decide(vec![giving_back("a=1", hits)]).await;
        assert_eq!(printed(&answer), "OK: OK minute 3/MINUTE left 3 in 50s", "{hits}");
    }
    world.decide(vec![counting("a=1", 3)]).await;
    world.later(50_000);
    world.decide(vec![giving_back("a=1", 3)]).await;
    let answer = world.decide(vec![counting("a=1", 3)]).await;
    assert_eq!(printed(&answer), "OK: OK minute 3/MINUTE left 0 in 60s");

    let fresh = world.decide(vec![giving_back("odd=new", 5), giving_back("shut", 1)]).await;
    assert_eq!(printed(&fresh), "OK: OK odd-one 5 left 5 in 90s; OK shut-down 0");
    // A full limit does not refuse a refund.
    let mixed = world.decide(vec![giving_back("a=1", 1), descriptor("bucket=1")]).await;
    assert_eq!(
        printed(&mixed),
        "OK: OK minute 3/MINUTE left 1 in 60s; OK bucket 60/MINUTE left 1 in 1s"
    );
    let bucket = world.decide(vec![giving_back("bucket=1", 1)]).await;
    assert!(
        printed(&bucket).starts_with("OK: OK bucket 60/MINUTE left 2 "),
        "{}",
        printed(&bucket)
    );
}

/// An override raised the capacity of the bucket. A refund must not cut the bucket to the capacity
/// of the policy.
#[tokio::test]
async fn what_is_refunded_is_refunded_by_its_override() {
    let world = World::new(POLICY).await;
    let set_override = async |effect| world.set_override("bucket", effect).await;
    let left = async |descriptor| {
        let printed = printed(&world.decide(vec![descriptor]).await);
        printed.split(" in ").next().unwrap().to_owned()
    };
    set_override(Effect::Quota { quota: 1_000, burst: Some(1_000) }).await;
    assert_eq!(left(counting("bucket=1", 100)).await, "OK: OK bucket 1000/MINUTE left 900");
    assert_eq!(left(giving_back("bucket=1", 5)).await, "OK: OK bucket 1000/MINUTE left 905");
    // Nothing was charged, so nothing is refunded.
    set_override(Effect::Unlimited).await;
    assert_eq!(left(giving_back("bucket=1", 5)).await, "OK: OK");
    set_override(Effect::Quota { quota: 1_000, burst: Some(1_000) }).await;
    assert_eq!(left(counting("bucket=1", 1)).await, "OK: OK bucket 1000/MINUTE left 904");
}

/// Envoy copies header fields of clients, which may contain any bytes.
#[tokio::test]
async fn values_that_are_no_text_are_counted_each_for_itself() {
    let world = World::new(POLICY).await;
    let value = |value: &[u8]| {
        let entry = Entry { key: "a".into(), value: value.into() };
        vec![RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() }]
    };
    for (bytes, left) in
        [(&b"\xff"[..], 2), (b"\xff", 1), (b"\xfe", 2), (b"", 2), ("\u{fffd}".as_bytes(), 2)]
    {
        let expected = format!("OK: OK minute 3/MINUTE left {left} in 50s");
        assert_eq!(printed(&world.decide(value(bytes)).await), expected, "{bytes:?}");
    }
}

#[tokio::test]
async fn what_is_blocked_counts_nowhere() {
    let world = World::new(POLICY).await;
    for _ in 0..5 {
        let answer = world.decide(vec![descriptor("a=1"), descriptor("shut=1")]).await;
        let expected = "OVER: OK minute 3/MINUTE left 3 in 50s; OVER shut-down 0";
        assert_eq!(printed(&answer), expected);
        // There is no limit status that explains the refusal.
        assert!(answer.response_headers_to_add.is_empty() && answer.raw_body.is_empty());
    }
}

/// The bug: if a request was refused without a charge and an override changed the charges of its
/// descriptors, a descriptor got the status of another descriptor's limit.
#[tokio::test]
async fn a_blocked_request_got_statuses_of_other_limits_under_an_override() {
    let world = World::new(POLICY).await;
    let blocked = || vec![descriptor("a=1"), descriptor("odd=1"), descriptor("shut=1")];
    for (effect, expected) in [
        (Effect::Unlimited, "OVER: OK; OK odd-one 5 left 5 in 90s; OVER shut-down 0"),
        (Effect::Counted, "OVER: OK; OK odd-one 5 left 5 in 90s; OVER shut-down 0"),
        (Effect::Blocked, "OVER: OVER minute 3/MINUTE left 0 in 60s; OK; OVER shut-down 0"),
    ] {
        world.set_override("minute", effect).await;
        assert_eq!(printed(&world.decide(blocked()).await), expected);
    }
}

#[tokio::test]
async fn shadows_count_and_stop_nobody() {
    let world = World::new(POLICY).await;
    for left in [2, 1, 0, 0] {
        let answer = world.decide(vec![descriptor("dark=1"), descriptor("odd=1")]).await;
        let begin = format!("OK: OK minute 3/MINUTE left {left} in 50s; OK odd-one 5 ");
        let described = printed(&answer);
        assert!(described.starts_with(&begin), "{described}");
    }
}

#[tokio::test]
async fn what_is_replaced_is_not_counted() {
    let world = World::new(POLICY).await;
    let answer = world.decide(vec![descriptor("odd=1"), descriptor("vip=1")]).await;
    assert_eq!(printed(&answer), "OK: OK; OK left 4294967295");
    let odd = world.decide(vec![descriptor("odd=1")]).await;
    assert_eq!(printed(&odd), "OK: OK odd-one 5 left 4 in 90s");
}

#[tokio::test]
async fn values_of_a_pattern_can_share_a_counter() {
    let world = World::new(POLICY).await;
    for (path, left) in [("/search", 2), ("/search/users", 1), ("/searching", 0)] {
        let answer = world.decide(vec![descriptor(&format!("deep=1,path={path}"))]).await;
        assert_eq!(printed(&answer), format!("OK: OK minute 3/MINUTE left {left} in 50s"));
    }
    let other = world.decide(vec![descriptor("deep=1,path=/find")]).await;
    assert_eq!(printed(&other), "OK: OK");
}

fn bringing(requests_per_unit: u32, unit: RateLimitUnit) -> RateLimitDescriptor {
    let limit = Some(RateLimitOverride { requests_per_unit, unit: unit.into() });
    RateLimitDescriptor { limit, ..descriptor("a=1") }
}

#[tokio::test]
async fn a_limit_can_be_brought_along() {
    let world = World::new(POLICY).await;
    let minute = |requests| vec![bringing(requests, RateLimitUnit::Minute)];
    assert_eq!(printed(&world.decide(minute(2)).await), "OK: OK - 2/MINUTE left 1 in 50s");
    assert_eq!(printed(&world.decide(minute(2)).await), "OK: OK - 2/MINUTE left 0 in 50s");
    assert_eq!(printed(&world.decide(minute(2)).await), "OVER: OVER - 2/MINUTE left 0 in 50s");
    // A raised override continues with the same counter. The counter of the policy's own limit was
    // never charged.
    assert_eq!(printed(&world.decide(minute(4)).await), "OK: OK - 4/MINUTE left 1 in 50s");
    let own = world.decide(vec![descriptor("a=1")]).await;
    assert_eq!(printed(&own), "OK: OK minute 3/MINUTE left 2 in 50s");
    assert_eq!(printed(&world.decide(minute(0)).await), "OVER: OVER - 0");
    let year = world.decide(vec![bringing(1, RateLimitUnit::Year)]).await;
    assert!(printed(&year).starts_with("OK: OK - 1/YEAR left 0 "), "{}", printed(&year));
}

#[tokio::test]
async fn clients_are_reported_as_the_policy_says() {
    let world = World::new(POLICY).await;
    let fields = |answer: &tollgate_server::grpc::proto::RateLimitResponse| {
        let pairs = answer.response_headers_to_add.iter();
        let mut pairs: Vec<String> =
            pairs.map(|field| format!("{}: {}", field.key, field.value)).collect();
        pairs.sort();
        pairs
    };
    let three = || vec![descriptor("a=1"), descriptor("hidden=1"), descriptor("dark=1")];
    let expected = [
        "x-ratelimit-limit: 3",
        "x-ratelimit-remaining: 2",
        "x-ratelimit-reset: 1700000100",
        "x-ratelimit-resource: minute",
        "x-ratelimit-used: 1",
    ];
    let answer = world.decide(three()).await;
    assert_eq!(fields(&answer), expected);
    assert!(answer.raw_body.is_empty() && answer.dynamic_metadata.is_none());

    world.decide(vec![counting("a=1", 2)]).await;
    let refused = world.decide(three()).await;
    let refusal = fields(&refused);
    // GitHub sends no `retry-after` with a primary refusal, and a body that octokit parses.
    assert!(refusal.iter().all(|field| !field.starts_with("retry-after")), "{refusal:?}");
    assert!(refusal.contains(&"content-type: application/json; charset=utf-8".to_owned()));
    let body: serde_json::Value = serde_json::from_slice(&refused.raw_body).unwrap();
    assert_eq!(body["violated-policies"], serde_json::json!(["minute"]));
}

#[tokio::test]
async fn other_domains_are_not_limited() {
    let world = World::new(POLICY).await;
    let mut requested = request(vec![bringing(0, RateLimitUnit::Day)]);
    requested.domain = "elsewhere".into();
    assert_eq!(printed(&world.send(requested).await.unwrap()), "OK: OK");
}
