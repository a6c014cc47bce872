//! Traces through the proxy, over shards, to a collector that accepts OTLP.

use crate::redis::fleet::{Fleet, SHARDS};
use crate::support::collector::{Collector, Listener, hex, only, text};
use crate::support::world::Proxy;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT: &str = "00f067aa0ba902b7";

const SERVER_KIND: i32 = 2;
const CLIENT_KIND: i32 = 3;

#[tokio::test]
async fn a_request_is_one_trace_from_its_client_over_the_shard_to_the_service() {
    let (fleet, collector, service) = (Fleet::start().await, Collector::open(), Listener::open());
    let traces = format!("traces: {{ endpoint: \"{}\", sample: 0% }}", collector.listener.url());
    let policy = fleet.policy(
        &format!(
            "limits: {{ one: {{ quota: 1, window: 1h, per: token }} }}\n\
             rules: [{{ name: everything, limits: one }}]\n{traces}"
        ),
        "deadline: 10s, deny_cache: false",
    );
    let proxy = Proxy::start_at(&service.url(), &policy);

    // A trace that starts here: none of these is recorded, and the service receives that decision.
    assert_eq!(proxy.get("/", &["authorization: Bearer nobody"]).status, 200);
    let requested = service.next();
    let untold = requested.field("traceparent").unwrap();
    assert!(untold.starts_with("00-") && untold.ends_with("-00"), "{untold}");

    let parent = format!("traceparent: 00-{TRACE}-{CLIENT}-01");
    let token = "authorization: Bearer nobody-is-told-of-this";
    let fields = [&*parent, "tracestate: vendor=1", token];
    assert_eq!(proxy.get("/secret-path", &fields).status, 200);
    let requested = service.next();
    assert_eq!(proxy.get("/secret-path", &fields).status, 429);

    let spans = collector.spans("GET", 2);
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:#?}");
    let everything = format!("{spans:?}");
    assert!(!everything.contains("nobody") && !everything.contains("secret-path"), "{everything}");

    let upstream = only(&spans, "upstream");
    let response = format!("00-{TRACE}-{}-01", hex(&upstream.span_id));
    assert_eq!(requested.field("traceparent"), Some(&*response));
    assert_eq!(requested.field("tracestate"), Some("vendor=1"));
    assert_eq!(upstream.kind, CLIENT_KIND);

    let admitted = spans.iter().find(|span| span.span_id == upstream.parent_span_id).unwrap();
    let refused =
        spans.iter().find(|span| span.name == "GET" && span.span_id != admitted.span_id).unwrap();
    for (span, status, decision, refused_by) in
        [(admitted, "200", "admitted", ""), (refused, "429", "refused", "one")]
    {
        assert_eq!((&*span.name, span.kind), ("GET", SERVER_KIND));
        assert_eq!(hex(&span.parent_span_id), CLIENT);
        assert_eq!(span.trace_state, "vendor=1");
        let described = |key: &str| text(&span.attributes, key);
        assert_eq!(described("http.response.status_code"), status);
        assert_eq!(described("tollgate.decision"), decision);
        assert_eq!(described("tollgate.limits"), "one");
        assert_eq!(described("tollgate.refused_by"), refused_by);
        assert_eq!(described("tollgate.remaining"), "0");
        assert_eq!(described("tollgate.source"), "store");
        assert_eq!(described("tollgate.rules"), "everything");
        assert_eq!(described("tollgate.policy.version").len(), 12);
        let subject = described("tollgate.subjects");
        assert!(subject.starts_with("token=#") && subject.len() == 7 + 32, "{subject}");

        let of_shard = |shard: &&_| {
            let shard: &opentelemetry_proto::tonic::trace::v1::Span = shard;
            shard.name == "shard" && shard.parent_span_id == span.span_id
        };
        let shards: Vec<_> = spans.iter().filter(of_shard).collect();
        assert_eq!(shards.len(), 1, "{spans:#?}");
        let described = |key: &str| text(&shards[0].attributes, key);
        assert!(SHARDS.contains(&&*described("tollgate.shard")), "{shards:?}");
        assert_eq!(described("tollgate.outcome"), "answered");
        assert_eq!(shards[0].kind, CLIENT_KIND);
        assert!(shards[0].start_time_unix_nano >= span.start_time_unix_nano);
        assert!(shards[0].end_time_unix_nano <= span.end_time_unix_nano);
    }
}
