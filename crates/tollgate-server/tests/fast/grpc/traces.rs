//! Spans of calls, and their parents from the metadata.

use tollgate::store::Memory;
use tollgate::trace::opentelemetry::Value;
use tollgate_server::otlp::{ParentSampling, sampler, tracer};
use tonic::Request;

use crate::grpc::world::{Opening, World, descriptor, request};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const POLICY: &str = "
limits: { one: { quota: 1, window: 1h } }
descriptors: [ { domain: edge, tree: [ { key: a, limit: one } ] } ]
";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_a_part_of_its_callers_trace() {
    let (tracer, mut spans) = tracer(sampler(0.0, ParentSampling::Follow));
    let opening = Opening { tracer, ..Opening::default() };
    let mut world = World::over(Memory::default(), POLICY, opening).await;
    for decision in ["admitted", "refused"] {
        let mut call = Request::new(request(vec![descriptor("a=1")]));
        call.metadata_mut().insert("traceparent", PARENT.parse().unwrap());
        world.client.should_rate_limit(call).await.unwrap();
        let mut ended = Vec::new();
        assert_eq!(spans.next(&mut ended, 10).await, 1);
        let span = &ended[0];
        assert_eq!(span.name, "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit");
        assert_eq!(span.span_context.trace_id().to_string(), PARENT[3..35]);
        assert_eq!(span.parent_span_id.to_string(), PARENT[36..52]);
        let described = span.attributes.iter().find(|it| it.key.as_str() == "tollgate.decision");
        assert_eq!(described.map(|it| &it.value), Some(&Value::from(decision)));
    }
    world.end().await.unwrap();
}
