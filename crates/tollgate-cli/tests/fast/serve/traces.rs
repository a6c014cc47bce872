//! Spans of requests at the listeners, and collectors that start late or never.

use crate::support::client::{Client, fetch, request, send_line};
use crate::support::collector::{Collector, Listener, hex, only, text};
use crate::support::node::{Folder, Node, POLICY, command, refused};

const ANY: &str = "127.0.0.1:0";

fn listeners(folder: &Folder) -> std::process::Command {
    command(&folder.policy(), &["--http", ANY, "--resp", ANY, "--admin", ANY])
}

#[test]
fn what_was_not_sent_yet_is_sent_at_the_end() {
    let (folder, collector) = (Folder::with(POLICY), Collector::open());
    let mut command = listeners(&folder);
    command.args(["--traces", &collector.listener.url()]);
    command.env("OTEL_TRACES_SAMPLER", "always_on");
    let node = Node::start(command);
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    let mut client = Client::connect(node.listener("http")).unwrap();
    let batch = r#"{"checks":[{"limits":[{"name":"all"}]},{"limits":[{"name":"all"}]}]}"#;
    let head = request("GET", "/v1/check/batch", None);
    let head =
        head.replacen("GET", "POST", 1).replace("length: 0", &format!("length: {}", batch.len()));
    client.send(format!("{head}{batch}")).unwrap();
    assert_eq!(client.answer().unwrap().status, 200);
    assert_eq!(send_line(node.listener("resp"), &["CL.THROTTLE k 5 5 60"]), ["*5"]);
    // Requests of administrators are not traffic.
    assert_eq!(fetch(node.listener("admin"), "GET", "/v1/status", None).status, 200);
    node.signal("-TERM");
    let (code, response) = node.ended();
    assert_eq!(code, Some(0), "{response}");
    assert!(response.contains("spans to http://"), "{response}");

    let spans = collector.spans("RESP", 1);
    assert_eq!(spans.len(), 5, "{spans:#?}");
    let check = only(&spans, "POST /v1/check");
    assert_eq!(text(&check.attributes, "tollgate.decision"), "admitted");
    assert_eq!(text(&check.attributes, "tollgate.limits"), "all");
    assert!(check.parent_span_id.is_empty());
    let batch = only(&spans, "POST /v1/check/batch");
    let checks: Vec<_> = spans.iter().filter(|span| span.name == "check").collect();
    assert_eq!(checks.len(), 2);
    for check in checks {
        assert_eq!(check.parent_span_id, batch.span_id);
        assert_eq!(text(&check.attributes, "tollgate.decision"), "admitted");
    }
    let traces: std::collections::HashSet<_> =
        spans.iter().map(|span| hex(&span.trace_id)).collect();
    assert_eq!(traces.len(), 3, "{traces:?}");
}

#[test]
fn a_collector_that_is_not_there_keeps_nobody_waiting() {
    // Nothing listens at port 1.
    let folder = Folder::with(&format!(
        "{POLICY}traces: {{ endpoint: 'http://127.0.0.1:1', sample: 100% }}\n"
    ));
    let node = Node::start(listeners(&folder));
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    node.wait_for_log("cannot export spans, they are dropped: ");
    let page = fetch(node.listener("admin"), "GET", "/metrics", None).body;
    for line in [
        "tollgate_trace_spans_total{outcome=\"exported\"} 0",
        "tollgate_trace_spans_total{outcome=\"failed\"} 1",
        "tollgate_trace_spans_total{outcome=\"dropped\"} 0",
    ] {
        assert!(page.lines().any(|response| response == line), "no {line} in\n{page}");
    }
}

#[test]
fn headers_and_compression_of_the_export_come_from_the_environment() {
    let (folder, listener) = (Folder::with(POLICY), Listener::open());
    let mut command = listeners(&folder);
    command.args(["--traces", &listener.url()]).env("OTEL_TRACES_SAMPLER", "always_on");
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=one");
    command.env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip");
    let node = Node::start(command);
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    let export = listener.next();
    assert_eq!(export.field("x-tenant"), Some("one"));
    assert_eq!(export.field("content-encoding"), Some("gzip"));
}

/// Creates a self-signed certificate for the collector's address.
fn certificate() -> rcgen::CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

#[test]
fn a_collector_over_tls_gets_spans_by_the_authorities_of_the_file_or_the_environment() {
    let shown = certificate();
    let (folder, collector) = (Folder::with(POLICY), Collector::over_tls(&shown));
    folder.write("ca.pem", &shown.cert.pem());
    let (url, authorities) = (collector.listener.url(), folder.path("ca.pem"));
    let mut by_environment = listeners(&folder);
    by_environment.args(["--traces", &url]).env("OTEL_TRACES_SAMPLER", "always_on");
    by_environment.env("OTEL_EXPORTER_OTLP_CERTIFICATE", &authorities);
    let node = Node::start(by_environment);
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    collector.spans("POST /v1/check", 1);

    let traces =
        format!("traces: {{ endpoint: '{url}', ca: '{}', sample: 100% }}\n", authorities.display());
    folder.write("policy.yaml", &format!("{POLICY}{traces}"));
    let node = Node::start(listeners(&folder));
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    let spans = collector.spans("POST /v1/check", 2);
    assert_eq!(text(&spans[1].attributes, "tollgate.decision"), "admitted");
}

#[test]
fn a_collector_whose_certificate_nobody_signed_gets_nothing() {
    let (folder, collector) = (Folder::with(POLICY), Collector::over_tls(&certificate()));
    folder.write("ca.pem", &certificate().cert.pem());
    let mut command = listeners(&folder);
    command.args(["--traces", &collector.listener.url()]).env("OTEL_TRACES_SAMPLER", "always_on");
    command.env("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", folder.path("ca.pem"));
    let node = Node::start(command);
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    let response = node.wait_for_log("cannot export spans, they are dropped: ");
    assert!(response.contains("certificate"), "{response}");
}

#[test]
fn nothing_is_traced_unless_somebody_says_so() {
    let (folder, listener) = (Folder::with(POLICY), Listener::open());
    let mut disabled = listeners(&folder);
    disabled.args(["--traces", &listener.url()]).env("OTEL_SDK_DISABLED", "true");
    for command in [listeners(&folder), disabled] {
        let node = Node::start(command);
        assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
        let page = fetch(node.listener("admin"), "GET", "/metrics", None).body;
        assert!(!page.contains("tollgate_trace_spans_total{"), "{page}");
        assert!(!node.response().contains("spans to"), "{}", node.response());
    }
}

#[test]
fn what_cannot_be_reached_is_refused_at_the_start() {
    let folder = Folder::with(POLICY);
    let flags = ["--http", ANY, "--traces", "grpc://collector:4317"];
    let response = refused(&folder.policy(), &flags);
    assert!(response.contains("the scheme http or https"), "{response}");
    let authorities = "traces: { endpoint: 'https://collector:4318', ca: none.pem }\n";
    folder.write("policy.yaml", &format!("{POLICY}{authorities}"));
    let response = refused(&folder.policy(), &["--http", ANY]);
    assert!(
        response.contains("cannot read the authorities of the collector: none.pem: "),
        "{response}"
    );
    folder.write("policy.yaml", &format!("{POLICY}traces: {{ endpoint: 'collector:4318' }}\n"));
    let response = refused(&folder.policy(), &["--http", ANY]);
    assert!(response.contains("\"collector:4318\" is not a collector's URL"), "{response}");
}
