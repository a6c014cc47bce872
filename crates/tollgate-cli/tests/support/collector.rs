//! A collector of spans that decodes OTLP over HTTP with OpenTelemetry's own messages, and a
//! service that records its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use rcgen::{CertifiedKey, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

const PATIENCE: Duration = Duration::from_secs(60);

/// A received request.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    /// Returns the value of the field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(field, value)| field.eq_ignore_ascii_case(name).then_some(value))
    }
}

/// An HTTP server that responds with 200 to everything and records it.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    requested: Mutex<Receiver<Asked>>,
}

impl Listener {
    pub(crate) fn open() -> Self {
        Self::open_with(None)
    }

    fn open_with(tls: Option<Arc<ServerConfig>>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (teller, requested) = channel();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (teller, tls) = (teller.clone(), tls.clone());
                thread::spawn(move || match tls {
                    None => serve(client, &teller),
                    Some(config) => {
                        let tls = ServerConnection::new(config).unwrap();
                        serve(StreamOwned::new(tls, client), &teller)
                    }
                });
            }
        });
        Self { address, scheme, requested: Mutex::new(requested) }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Returns the next request.
    pub(crate) fn next(&self) -> Asked {
        self.requested.lock().unwrap().recv_timeout(PATIENCE).expect("a request")
    }
}

/// Serves until the connection ends.
fn serve(client: impl Read + Write, teller: &Sender<Asked>) -> Option<()> {
    let mut reader = BufReader::new(client);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let mut requested = Asked { head, body: Vec::new() };
        let length = requested.field("content-length").map_or(0, |length| length.parse().unwrap());
        requested.body = vec![0; length];
        reader.read_exact(&mut requested.body).ok()?;
        // The request is recorded before the response, so a client that has its response finds the
        // record.
        teller.send(requested).ok()?;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        reader.get_mut().write_all(answer).and_then(|()| reader.get_mut().flush()).ok()?;
    }
}

/// A collector of spans, at a listener.
pub(crate) struct Collector {
    pub(crate) listener: Listener,
    spans: Mutex<Vec<Span>>,
}

impl Collector {
    pub(crate) fn open() -> Self {
        Self { listener: Listener::open(), spans: Mutex::default() }
    }

    /// Starts a collector with this certificate.
    pub(crate) fn over_tls(shown: &CertifiedKey<KeyPair>) -> Self {
        let key = PrivateKeyDer::try_from(shown.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![shown.cert.der().clone()], key)
            .unwrap();
        Self { listener: Listener::open_with(Some(Arc::new(config))), spans: Mutex::default() }
    }

    /// Waits for this number of spans with this name, and returns all received spans.
    pub(crate) fn spans(&self, name: &str, count: usize) -> Vec<Span> {
        let mut spans = self.spans.lock().unwrap();
        while spans.iter().filter(|span| span.name == name).count() < count {
            let requested = self.listener.next();
            assert!(
                requested.head.starts_with("POST /v1/traces HTTP/1.1\r\n"),
                "{}",
                requested.head
            );
            assert_eq!(requested.field("content-type"), Some("application/x-protobuf"));
            let request = ExportTraceServiceRequest::decode(&*requested.body).unwrap();
            for resource in request.resource_spans {
                let response = resource.resource.unwrap();
                assert_eq!(text(&response.attributes, "service.name"), "tollgate");
                spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        }
        spans.clone()
    }
}

/// Returns the only span with this name.
#[track_caller]
pub(crate) fn only<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let named: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(named.len(), 1, "{name}: {spans:#?}");
    named[0]
}

/// Returns the value of an attribute: a text, a number, or several separated by commas.
pub(crate) fn text(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    found.and_then(|attribute| attribute.value.as_ref()).map_or_else(String::new, word)
}

fn word(value: &AnyValue) -> String {
    match value.value.as_ref().unwrap() {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::ArrayValue(array) => array.values.iter().map(word).collect::<Vec<_>>().join(","),
        other => panic!("{other:?}"),
    }
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
