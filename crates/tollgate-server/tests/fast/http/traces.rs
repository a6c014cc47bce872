//! Spans of requests at the HTTP listener, and their parents.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::Request;
use tollgate::model::{Charge, Readings, Store, StoreError, Timestamp};
use tollgate::store::Memory;
use tollgate::trace::opentelemetry::Value;
use tollgate::trace::opentelemetry::trace::SpanId;
use tollgate::trace::{self, SpanKind};
use tollgate_server::otlp::{ParentSampling, SpanData, SpanReceiver, sampler, tracer};
use tollgate_server::{Access, HttpOptions, Peer};

use crate::http::world::World;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn traced(share: f64) -> (World, SpanReceiver) {
    let (tracer, spans) = tracer(sampler(share, ParentSampling::Follow));
    (World::traced(Memory::default(), HttpOptions::default(), tracer), spans)
}

/// Returns the finished spans after all requests are answered.
async fn ended(world: World, mut spans: SpanReceiver) -> Vec<SpanData> {
    drop(world);
    let mut all = Vec::new();
    while spans.next(&mut all, 100).await > 0 {}
    all
}

fn described<'s>(span: &'s SpanData, name: &str) -> Option<&'s Value> {
    let mut attributes = span.attributes.iter();
    attributes.find_map(|it| (it.key.as_str() == name).then_some(&it.value))
}

#[tokio::test]
async fn a_sub_request_is_a_part_of_its_callers_trace() {
    let (world, spans) = traced(0.0);
    let send = |parent: Option<&str>| {
        let request = Request::get("/v1/authorize")
            .header("x-forwarded-method", "GET")
            .header("x-forwarded-uri", "/who?name=ann")
            .header("x-forwarded-for", "192.0.2.1")
            .extension(Peer(None));
        let request = parent
            .into_iter()
            .fold(request, |request, parent| request.header("traceparent", parent));
        world.call(request.body(Body::empty()).unwrap())
    };
    assert_eq!(send(Some(PARENT)).await.status, 200);
    // A request whose parent is not sampled, and one that would start a trace here, are not
    // recorded.
    assert_eq!(send(Some(&PARENT.replace("-01", "-00"))).await.status, 200);
    assert_eq!(send(None).await.status, 429);
    let spans = ended(world, spans).await;
    assert_eq!(spans.len(), 1, "{spans:?}");
    let span = &spans[0];
    assert_eq!((&*span.name, span.span_kind.clone()), ("GET /v1/authorize", SpanKind::Server));
    assert_eq!(span.span_context.trace_id().to_string(), PARENT[3..35]);
    assert_eq!(span.parent_span_id.to_string(), PARENT[36..52]);
    assert!(span.end_time >= span.start_time);
    assert_eq!(described(span, "http.response.status_code"), Some(&Value::I64(200)));
    let rules = described(span, "tollgate.rules").map(Value::to_string);
    assert_eq!(rules.as_deref(), Some(r#"["stranger"]"#));
    assert!(!format!("{span:?}").contains("ann"), "{span:?}");
}

#[tokio::test]
async fn what_is_no_charge_has_a_span_without_a_decision_and_operators_have_none() {
    let (world, spans) = traced(1.0);
    let peek = r#"{"limits":[{"name":"core","subject":{"token":"abc"}}]}"#;
    world.post("/v1/peek", peek).await.ok();
    assert_eq!(world.get("/healthz").await.status, 200);
    assert_eq!(world.post("/v1/nowhere", peek).await.status, 404);
    let spans = ended(world, spans).await;
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!(spans[0].name, "POST /v1/peek");
    assert_eq!(spans[0].parent_span_id, SpanId::INVALID);
    assert_eq!(described(&spans[0], "tollgate.decision"), None);
}

/// A store that records whether a call belongs to a trace.
struct Traced {
    memory: Memory,
    has_trace: Arc<AtomicBool>,
}

impl Store for Traced {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.has_trace.store(trace::is_recording(), Ordering::Relaxed);
        self.memory.apply(now, charges).await
    }
}

/// The bug: the decision on a request with an idempotency key is made in a task of its own, which
/// did not belong to the trace of the request.
#[tokio::test]
async fn the_store_calls_of_a_request_with_an_idempotency_key_were_not_traced() {
    let has_trace = Arc::new(AtomicBool::new(false));
    let store = Traced { memory: Memory::default(), has_trace: Arc::clone(&has_trace) };
    let (tracer, spans) = tracer(sampler(1.0, ParentSampling::Follow));
    let world = World::traced(store, HttpOptions::default(), tracer);
    let charge = r#"{"limits":[{"name":"core","subject":{"token":"abc"}}]}"#;
    world.post_with("/v1/check", &[("idempotency-key", "one")], charge).await.ok();
    assert!(has_trace.load(Ordering::Relaxed));
    let spans = ended(world, spans).await;
    let decision = spans.iter().find_map(|span| described(span, "tollgate.decision"));
    assert!(decision.is_some(), "{spans:?}");
}

/// A change is made in a task of its own. A program around the listener can trace the request.
#[tokio::test]
async fn the_store_calls_of_a_change_belong_to_the_trace_of_its_request() {
    let has_trace = Arc::new(AtomicBool::new(false));
    let store = Traced { memory: Memory::default(), has_trace: Arc::clone(&has_trace) };
    let options = HttpOptions { admin: Some(Access::Open), ..HttpOptions::default() };
    let world = World::over(store, options);
    let (tracer, _spans) = tracer(sampler(1.0, ParentSampling::Follow));
    let reset = world.delete("/v1/standing?limit=core&subject[token]=abc");
    tracer.begin("request").run(reset).await.ok();
    assert!(has_trace.load(Ordering::Relaxed));
}
