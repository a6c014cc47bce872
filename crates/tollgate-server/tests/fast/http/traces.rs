//! Spans of requests at the HTTP listener, and their parents.

use axum::body::Body;
use axum::http::Request;
use tollgate::Tracer;
use tollgate::store::Memory;
use tollgate::trace::{AttributeValue, ParentSampling, Sampler, Span, SpanKind, SpanReceiver};
use tollgate_server::{HttpOptions, Peer};

use crate::http::world::World;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn traced(per_million: u32) -> (World, SpanReceiver) {
    let (tracer, spans) = Tracer::new(Sampler::new(per_million, ParentSampling::Follow));
    (World::traced(Memory::default(), HttpOptions::default(), tracer), spans)
}

/// Returns the finished spans after all requests are answered.
async fn ended(world: World, mut spans: SpanReceiver) -> Vec<Span> {
    drop(world);
    let mut all = Vec::new();
    while spans.next(&mut all, 100).await > 0 {}
    all
}

fn described<'s>(span: &'s Span, name: &str) -> Option<&'s AttributeValue> {
    span.attributes.iter().find_map(|(key, value)| (*key == name).then_some(value))
}

#[tokio::test]
async fn a_sub_request_is_a_part_of_its_callers_trace() {
    let (world, spans) = traced(0);
    let ask = |parent: Option<&str>| {
        let request = Request::get("/v1/authorize")
            .header("x-forwarded-method", "GET")
            .header("x-forwarded-uri", "/who?name=ann")
            .header("x-forwarded-for", "192.0.2.1")
            .extension(Peer(None));
        let request = parent
            .into_iter()
            .fold(request, |request, parent| request.header("traceparent", parent));
        world.ask(request.body(Body::empty()).unwrap())
    };
    assert_eq!(ask(Some(PARENT)).await.status, 200);
    // A request whose parent is not sampled, and one that would start a trace here, are not
    // recorded.
    assert_eq!(ask(Some(&PARENT.replace("-01", "-00"))).await.status, 200);
    assert_eq!(ask(None).await.status, 429);
    let spans = ended(world, spans).await;
    assert_eq!(spans.len(), 1, "{spans:?}");
    let span = &spans[0];
    assert_eq!((&*span.name, span.kind), ("GET /v1/authorize", SpanKind::Server));
    assert_eq!(span.context.trace.to_string(), PARENT[3..35]);
    assert_eq!(span.parent.unwrap().to_string(), PARENT[36..52]);
    assert!(span.ended >= span.began);
    assert_eq!(described(span, "http.response.status_code"), Some(&AttributeValue::Integer(200)));
    assert_eq!(
        described(span, "tollgate.rules"),
        Some(&AttributeValue::Texts(vec!["stranger".into()]))
    );
    assert!(!format!("{span:?}").contains("ann"), "{span:?}");
}

#[tokio::test]
async fn what_is_no_charge_has_a_span_without_a_decision_and_operators_have_none() {
    let (world, spans) = traced(1_000_000);
    let peek = r#"{"limits":[{"name":"core","subject":{"token":"abc"}}]}"#;
    world.post("/v1/peek", peek).await.ok();
    assert_eq!(world.get("/healthz").await.status, 200);
    assert_eq!(world.post("/v1/nowhere", peek).await.status, 404);
    let spans = ended(world, spans).await;
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!(spans[0].name, "POST /v1/peek");
    assert_eq!((spans[0].parent, described(&spans[0], "tollgate.decision")), (None, None));
}
