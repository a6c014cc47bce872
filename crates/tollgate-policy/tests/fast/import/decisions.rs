//! An imported policy makes the same decisions as `envoyproxy/ratelimit` with the original files.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tollgate_policy::import::envoy_ratelimit::Counting;
use tollgate_policy::import::{SourceFile, envoy_ratelimit};
use tollgate_policy::parse;

use crate::import::drawn::{file, requests};
use crate::import::reference_server::ReferenceServer;
use crate::import::served::Served;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn an_imported_policy_answers_as_the_server_does(file in file(), requests in requests()) {
        // JSON is valid YAML.
        let text = serde_json::to_string_pretty(&file).unwrap();
        let source = SourceFile { name: "edge.yaml", text: &text };
        let imported = envoy_ratelimit(&[source], Counting::Each).unwrap();
        let loaded = parse("policy.yaml", &imported.policy).unwrap();
        let mut served = Served::new(loaded.policy);
        let mut server = ReferenceServer::new(file);
        let mut now = 1_700_000_000;
        for (later, request) in requests {
            now += later;
            let expected = server.should_rate_limit(now, &request);
            let answer = served.should_rate_limit("edge", now, &request);
            prop_assert_eq!(answer, expected, "{:?} at {}\n{}", request, now, imported.policy);
        }
    }
}

/// The property would also hold if no request were limited. This test checks that some random
/// requests are refused and some are admitted.
#[test]
fn requests_by_chance_are_refused_and_admitted() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut over, mut under) = (0, 0);
    for _ in 0..100 {
        let drawn = (file(), requests()).new_tree(&mut runner).unwrap().current();
        let mut server = ReferenceServer::new(drawn.0);
        for (_, request) in drawn.1 {
            let answer = server.should_rate_limit(1_700_000_000, &request);
            over += usize::from(answer.is_over);
            under += usize::from(!answer.is_over);
        }
    }
    assert!(over > 200 && under > 200, "{over} refused, {under} admitted");
}
