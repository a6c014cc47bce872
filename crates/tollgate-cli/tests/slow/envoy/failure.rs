//! Tollgate is down, or its store does not answer.

use crate::envoy::site::{Changes, LONG_WINDOW, Site, changed, shipped};
use crate::envoy::tollgate::Tollgate;
use crate::kit::Server;

const DENY: Changes<'static> = &[("failure_mode_deny: false", "failure_mode_deny: true")];

/// The names of Envoy's counters of calls that timed out and of calls that failed.
const TIMED_OUT: &str = "cluster.tollgate.upstream_rq_timeout";
const FAILED: &str = "cluster.service.ratelimit.error";

#[test]
fn without_tollgate_envoy_does_as_it_is_reported() {
    for (changes, status) in [(&[][..], 200), (DENY, 500)] {
        let mut site = Site::start(&[LONG_WINDOW], changes);
        assert_eq!(site.envoy.get("/", &[]).field("x-ratelimit-used"), "1");
        site.tollgate.kill();
        let answer = site.envoy.get("/", &[]);
        assert_eq!((answer.status, answer.field("x-ratelimit-used")), (status, ""));
        // Envoy reconnects by itself, to the counters of a new process.
        let address = site.tollgate.address.to_string();
        let policy = site.folder().join("policy.yaml");
        let _again = Tollgate::start_at(&address, &policy);
        let found = (0..3_000).any(|_| {
            let answer = site.envoy.get("/", &[]);
            std::thread::sleep(std::time::Duration::from_millis(10));
            answer.field("x-ratelimit-used") == "1"
        });
        assert!(found);
    }
}

/// Returns the shipped policy with one shard in `redis`. While `redis` does not answer, the policy
/// denies or allows requests, as `on_failure` states.
fn over(redis: &Server, on_failure: &str, folder: &std::path::Path) -> String {
    let secret = folder.join("secret");
    std::fs::write(&secret, "the same on every node").unwrap();
    let domain = format!("domain: edge\n    on_failure: {on_failure}");
    let shipped = shipped("policies/envoy.yaml");
    let text = changed(&shipped, &[LONG_WINDOW, ("domain: edge", &domain)]);
    // The deadline is long enough for every response on a busy machine. Envoy's timeout is much
    // longer.
    format!(
        "{text}\nsecret: {{ file: \"{}\" }}\n\
         store: {{ redis: {{ shards: {{ a: {{ primary: \"{}\" }} }}, deadline: 1s }} }}\n",
        secret.display(),
        redis.url(),
    )
}

/// Starts a site, and stops its Redis after the first request.
async fn frozen(on_failure: &str, changes: Changes<'_>) -> (Site, Server) {
    let redis = Server::start().await;
    let folder = tempfile::TempDir::new().unwrap();
    let policy = over(&redis, on_failure, folder.path());
    let site = Site::with(&policy, "deploy/envoy/envoy.yaml", changes);
    assert_eq!(site.envoy.get("/", &[]).field("x-ratelimit-used"), "1");
    redis.freeze();
    (site, redis)
}

#[tokio::test]
async fn a_store_that_is_frozen_is_denied_where_the_policy_says_so() {
    for (changes, status) in [(&[][..], 200), (DENY, 500)] {
        let (site, redis) = frozen("deny", changes).await;
        for _ in 0..20 {
            let answer = site.envoy.get("/", &[]);
            assert_eq!((answer.status, answer.field("x-ratelimit-used")), (status, ""));
        }
        // Tollgate responded each time that its store does not answer.
        assert_eq!((site.envoy.counted(FAILED), site.envoy.counted(TIMED_OUT)), (20, 0));
        redis.thaw();
    }
}

#[tokio::test]
async fn a_store_that_is_frozen_leaves_this_nodes_share() {
    let (site, redis) = frozen("local", DENY).await;
    for used in 2..40 {
        let answer = site.envoy.get("/", &[]);
        assert_eq!((answer.status, answer.field("x-ratelimit-used")), (200, &*used.to_string()));
    }
    assert_eq!((site.envoy.counted(FAILED), site.envoy.counted(TIMED_OUT)), (0, 0));
    redis.thaw();
}

#[tokio::test]
async fn a_store_that_is_frozen_lets_pass_where_the_policy_says_so() {
    let (site, redis) = frozen("allow", DENY).await;
    for _ in 0..20 {
        let answer = site.envoy.get("/", &[]);
        assert_eq!((answer.status, answer.field("x-ratelimit-used")), (200, ""));
    }
    assert_eq!((site.envoy.counted(FAILED), site.envoy.counted(TIMED_OUT)), (0, 0));
    redis.thaw();
}
