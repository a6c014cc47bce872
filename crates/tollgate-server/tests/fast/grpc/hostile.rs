//! Invalid and hostile requests, each with its exact response. None may be admitted by accident.

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, Version};
use http_body_util::{BodyExt, Full};
use prost::Message;
use tokio::net::TcpStream;
use tollgate_server::grpc::proto::{
    Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest,
};
use tonic::Code;

use crate::grpc::world::{World, counting, descriptor, giving_back, printed, request};

const POLICY: &str = "
limits: { two: { quota: 2, window: 1m, anchor: calendar } }
descriptors:
  - domain: edge
    tree:
      - key: a
        limit: two
        descriptors: [{ key: a, limit: two }]
      - { key: shut, blocked: true }
      - { key: '*', limit: two, name: star }
";

/// A descriptor whose limit is used up, so every charge of it is refused.
const FULL: &str = "a=full";

fn entries(pairs: impl IntoIterator<Item = (String, String)>) -> RateLimitDescriptor {
    let entry = |(key, value): (_, String)| Entry { key, value: value.into() };
    let entries = pairs.into_iter().map(entry).collect();
    RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }
}

fn one(key: &str, value: &str) -> RateLimitRequest {
    request(vec![entries([(key.to_owned(), value.to_owned())])])
}

fn many(count: usize) -> RateLimitRequest {
    request(vec![descriptor(FULL); count])
}

fn deep(count: usize) -> RateLimitRequest {
    let pair = ("a".to_owned(), "full".to_owned());
    request(vec![entries(std::iter::repeat_n(pair, count))])
}

fn brought(requests_per_unit: u32, unit: i32) -> RateLimitRequest {
    let limit = Some(RateLimitOverride { requests_per_unit, unit });
    request(vec![RateLimitDescriptor { limit, ..descriptor("a=1") }])
}

fn addend(hits_addend: u32) -> RateLimitRequest {
    RateLimitRequest { hits_addend, ..request(vec![descriptor("a=1")]) }
}

fn domain(name: &str) -> RateLimitRequest {
    RateLimitRequest { domain: name.into(), ..request(vec![descriptor(FULL)]) }
}

const TWO: &str = "two 2/MINUTE left 2 in 50s";
const NONE: &str = "two 2/MINUTE left 0 in 50s";

/// The name, the request, and the expected response.
type Row = (&'static str, RateLimitRequest, String);

fn invalid(printed: &str) -> String {
    format!("INVALID: {printed}")
}

fn over(printed: &str) -> String {
    format!("OVER: OVER {printed}")
}

/// Requests with too few or too many elements.
fn shapes() -> Vec<Row> {
    let long = "k".repeat(257);
    let no_domain = invalid("the domain is empty: send a domain of the policy");
    let no_entries =
        |index| invalid(&format!("descriptors[{index}] has no entries: send at least one"));
    let crowd = |count| invalid(&format!("there are {count} descriptors: at most 64 are allowed"));
    let no_key = |entry| invalid(&format!("descriptors[0].entries[{entry}] has an empty key"));
    let empty = RateLimitDescriptor::default;
    vec![
        ("nothing at all", RateLimitRequest::default(), no_domain.clone()),
        ("no domain", domain(""), no_domain),
        ("a domain of blanks", domain("  "), "OK: OK".into()),
        ("a domain in capitals", domain("EDGE"), "OK: OK".into()),
        ("a domain with NUL", domain("edge\0"), "OK: OK".into()),
        ("no descriptors", request(vec![]), invalid("there are no descriptors: send at least one")),
        ("an empty descriptor", request(vec![empty()]), no_entries(0)),
        ("one behind a good one", request(vec![descriptor("a=1"), empty()]), no_entries(1)),
        (
            "64 descriptors",
            many(64),
            format!("OVER: {}", vec![format!("OVER {NONE}"); 64].join("; ")),
        ),
        ("65 descriptors", many(65), crowd(65)),
        ("1000 descriptors", many(1000), crowd(1000)),
        ("32 entries", deep(32), "OK: OK".into()),
        ("33 entries", deep(33), invalid("descriptors[0] has 33 entries: at most 32 are allowed")),
        ("an empty key", one("", "v"), no_key(0)),
        ("an empty second key", request(vec![descriptor("a=full,=x")]), no_key(1)),
        (
            "a long key",
            one(&long, ""),
            invalid("descriptors[0].entries[0] has a key of 257 bytes: at most 256"),
        ),
        ("a key as long as may be", one(&long[1..], ""), "OK: OK".into()),
        (
            "a full one behind others",
            request(["x", "y", FULL].map(descriptor).into()),
            format!("OVER: OK; OK; OVER {NONE}"),
        ),
    ]
}

/// Unusual values. Each has its own counter, of which one unit is charged.
fn values() -> Vec<Row> {
    let huge = "v".repeat(60_000);
    let fresh = [
        ("an empty value", one("a", "")),
        ("a huge value", one("a", &huge)),
        ("a value that looks like a pattern", one("a", "*")),
        ("a value with separators", one("a", "full,b=c")),
        ("a value with control characters", one("a", "\r\n\0\u{7f}")),
        ("keys and values that join alike", request(vec![descriptor("a=x,a=y_z")])),
        ("the other way to join them", request(vec![descriptor("a=x_y,a=z")])),
    ];
    let printed = "OK: OK two 2/MINUTE left 1 in 50s";
    let star = "OK: OK star 2/MINUTE left 1 in 50s";
    let mut rows: Vec<Row> =
        fresh.into_iter().map(|(what, sent)| (what, sent, printed.into())).collect();
    rows.push(("a key that looks like a pattern", one("*", "x"), star.into()));
    rows
}

/// Hits that are too large, or negative.
fn numbers() -> Vec<Row> {
    let take = |hits| request(vec![counting("a=1", hits)]);
    let two = |one, other| request(vec![counting("a=1", one), counting("a=1", other)]);
    let both = format!("OVER: OVER {TWO}; OVER {TWO}");
    let back = |text, hits| request(vec![giving_back(text, hits)]);
    let blocked = request(vec![giving_back("shut", 1), descriptor("shut")]);
    vec![
        ("the largest addend of a request", addend(u32::MAX), over(TWO)),
        ("an addend above the quota", addend(3), over(TWO)),
        ("2^31", take(1 << 31), over(TWO)),
        ("2^32", take(1 << 32), over(TWO)),
        ("2^53 - 1", take((1 << 53) - 1), over(TWO)),
        ("2^53", take(1 << 53), over(TWO)),
        ("2^63", take(1 << 63), over(TWO)),
        ("2^64 - 1", take(u64::MAX), over(TWO)),
        ("two that overflow together", two(u64::MAX, 2), both.clone()),
        ("two that pass the quota together", two(2, 1), both),
        ("0 of a full limit", request(vec![counting(FULL, 0)]), over(NONE)),
        ("give back 2^63 that nobody took", back("a=none", 1 << 63), format!("OK: OK {TWO}")),
        ("give back 0", back(FULL, 0), format!("OK: OK {NONE}")),
        ("give back what is blocked, and take it", blocked, "OVER: OK - 0; OVER - 0".into()),
    ]
}

/// Limits with invalid numbers.
fn limits() -> Vec<Row> {
    let unit = |unit: i32| {
        let limit = format!("descriptors[0].limit has the unknown unit {unit}");
        (brought(5, unit), invalid(&format!("{limit}: use 1 (SECOND) to 6 (YEAR)")))
    };
    let rows = [
        ("a limit of nothing", (brought(0, 1), over("- 0"))),
        ("a limit without a unit", unit(0)),
        ("a limit by a unit that is none", unit(99)),
        ("a limit by a negative unit", unit(-1)),
        ("a limit by the unit of answers", unit(7)),
    ];
    rows.into_iter().map(|(what, (sent, printed))| (what, sent, printed)).collect()
}

#[tokio::test]
async fn each_message_has_its_answer() {
    let world = World::new(POLICY).await;
    world.decide(vec![counting(FULL, 2)]).await;
    let rows = [shapes(), values(), numbers(), limits()].concat();
    assert_eq!(rows.len(), 45);
    for (what, requested, expected) in rows {
        let described = match world.send(requested).await {
            Ok(answer) => printed(&answer),
            Err(status) if status.code() == Code::InvalidArgument => invalid(status.message()),
            Err(status) => format!("{:?}: {}", status.code(), status.message()),
        };
        assert_eq!(described, expected, "{what}");
    }
}

/// Sends raw bytes over a new connection, which no gRPC client would send.
async fn raw(address: &str, path: &str, body: Vec<u8>, encoding: &str) -> (u16, String) {
    let stream = hyper_util::rt::TokioIo::new(TcpStream::connect(address).await.unwrap());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post(format!("http://{address}{path}"))
        .version(Version::HTTP_2)
        .header(CONTENT_TYPE, "application/grpc")
        .header("grpc-encoding", encoding)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let trailers = body.collect().await.unwrap().trailers().cloned().unwrap_or_default();
    connection.abort();
    let status = head.headers.get("grpc-status").or_else(|| trailers.get("grpc-status"));
    (head.status.as_u16(), status.unwrap().to_str().unwrap().to_owned())
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message].concat()
}

const SERVICE: &str = "/envoy.service.ratelimit.v3.RateLimitService";

/// The bytes sent to the method, and the expected status.
fn bytes() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let good = good();
    let large = one("a", &"v".repeat(65_536)).encode_to_vec();
    let compressed = [&[1], &good[1..]].concat();
    let overflow = [&[0x12][..], &[0xff; 9], &[0x01]].concat();
    vec![
        ("what is right", good.clone(), "0"),
        ("a message of more than 64 KiB", framed(&large), "8"),
        ("a length of 4 GiB", vec![0, 0xff, 0xff, 0xff, 0xff, b'x'], "8"),
        ("no message", vec![], "13"),
        ("two messages", good.repeat(2), "0"),
        ("half a message", good[..good.len() - 1].to_vec(), "13"),
        ("a message that says it is compressed", compressed, "13"),
        ("a domain that is no text", framed(&[0x0a, 0x02, 0xff, 0xfe]), "13"),
        ("a length that overflows", framed(&overflow), "13"),
        ("bytes by chance", framed(&[0xde, 0xad, 0xbe, 0xef]), "13"),
    ]
}

fn good() -> Vec<u8> {
    framed(&request(vec![descriptor("a=1")]).encode_to_vec())
}

#[tokio::test]
async fn bytes_have_their_status() {
    let world = World::new(POLICY).await;
    let path = format!("{SERVICE}/ShouldRateLimit");
    for (what, body, expected) in bytes() {
        let printed = raw(&world.address, &path, body, "identity").await;
        assert_eq!(printed, (200, expected.to_owned()), "{what}");
    }
    let unknown = (200, "12".to_owned());
    assert_eq!(raw(&world.address, &path, good(), "gzip").await, unknown, "gzip");
    let method = format!("{SERVICE}/Other");
    let service = path.replace("v3", "v2");
    for path in [&*method, &*service, "/", "/json"] {
        assert_eq!(raw(&world.address, path, good(), "identity").await, unknown, "{path}");
    }
}
