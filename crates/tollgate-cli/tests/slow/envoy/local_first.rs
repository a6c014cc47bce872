//! A limit in Envoy itself before the call to Tollgate.

use crate::envoy::site::{LONG_WINDOW, Site, changed, shipped};

#[test]
fn what_envoy_refuses_tollgate_is_never_asked() {
    let policy = changed(&shipped("policies/envoy.yaml"), &[LONG_WINDOW]);
    let few = "{ max_tokens: 5, tokens_per_fill: 5, fill_interval: 3600s }";
    let many = "{ max_tokens: 1000, tokens_per_fill: 1000, fill_interval: 1s }";
    let site = Site::with(&policy, "deploy/envoy/envoy-local-first.yaml", &[(many, few)]);
    let answers: Vec<_> = (0..20).map(|_| site.envoy.get("/", &[])).collect();
    let (passed, refused) = answers.split_at(5);
    let used: Vec<&str> = passed.iter().map(|answer| answer.field("x-ratelimit-used")).collect();
    assert_eq!(used, ["1", "2", "3", "4", "5"]);
    for answer in refused {
        assert_eq!((answer.status, answer.field("x-refused-by")), (429, "envoy"));
    }
    assert_eq!(site.envoy.counted("cluster.tollgate.upstream_rq_completed"), 5);
}
