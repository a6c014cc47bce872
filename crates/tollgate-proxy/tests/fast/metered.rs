//! Requests whose cost is in the response, through the proxy.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::mpsc::{Receiver, channel};
use tollgate::{
    Limiter,
    model::{
        Algorithm, Cost, Limit, Millis, Policy, RequestAttributes, ReservationTerms,
        algo::{Anchor, FixedWindow},
        policy::{
            JsonPointer, LimitBinding, LimitRef, MatchMode, Meter, MeteredLimit, PathPattern,
            RequestMatch, ReservationAmount, ReservationSource, Rule,
        },
    },
    store::Memory,
    tower::Layer,
};

use crate::{
    setup::{Client, Proxy, exchange, header as field, settings, statuses, within},
    upstream::{Recorder, serve},
};

const QUOTA: u64 = 1_000;

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).expect("a pointer")
}

/// Creates a limit of a thousand tokens an hour in total. `/max_tokens` of the request, or 40, is
/// reserved, and `/usage/total_tokens` of the response is the actual cost.
fn tokens(overdraft: u64) -> Arc<Limiter<Memory>> {
    let window = FixedWindow::new(QUOTA, Millis::from_secs(3600), Anchor::FirstRequest);
    let limit = Limit::new("tokens", Algorithm::FixedWindow(window.expect("a window")));
    let terms = ReservationTerms { overdraft, ..ReservationTerms::default() };
    let limit = limit.and_then(|limit| limit.with_reservation_terms(terms)).expect("a limit");
    let limit = LimitBinding { limit: Arc::new(limit), per: Vec::new() };
    let paths = vec![PathPattern::parse("/**").expect("a path")];
    let used = LimitRef { limit: 0, cost: Cost::up_to(40) };
    let mut rule = Rule::new("all", RequestMatch { paths, ..RequestMatch::default() }, vec![used]);
    let source = ReservationSource::Json { pointer: pointer("/max_tokens") };
    rule.metered.push(MeteredLimit {
        limit: 0,
        meter: Arc::new(Meter::Json { pointer: pointer("/usage/total_tokens") }),
        reserve: Some(ReservationAmount { source, at_least: None, at_most: None }),
    });
    let policy = Policy::new(Vec::new(), vec![limit], vec![rule], MatchMode::FirstMatch);
    Arc::new(Limiter::new(policy.expect("a policy"), Memory::default()))
}

/// Returns the used tokens, and how many of them are only reserved.
async fn used(limiter: &Limiter<Memory>) -> (u64, u64) {
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let policy = limiter.policy();
    let plan = policy.plan(&attributes, limiter.key());
    let evaluation = limiter.peek_planned(limiter.now(), &plan.enforced).await.expect("an answer");
    (evaluation.0.statuses[0].used, evaluation.0.statuses[0].reserved)
}

async fn used_is(limiter: &Limiter<Memory>, expected: (u64, u64)) {
    within(async {
        while used(limiter).await != expected {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn in_front(upstream: std::net::SocketAddr, limiter: &Arc<Limiter<Memory>>) -> Proxy {
    let settings = settings(upstream);
    settings.json_bodies.enable();
    Proxy::layered(settings, Layer::new(Arc::clone(limiter))).await
}

struct Pieces(Receiver<io::Result<Bytes>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// Answers like a language model. The path `/N` of a request requests N tokens, which are sent as
/// one event each, with the number of tokens so far. `/N/break` aborts the response after the last
/// token, and `/N/wait` waits until the client disconnects.
async fn model(request: Request<Incoming>) -> Response<Pieces> {
    let path = request.uri().path().to_owned();
    request.into_body().collect().await.expect("a whole request");
    let mut steps = path.split('/').skip(1);
    let tokens: u64 = steps.next().and_then(|count| count.parse().ok()).expect("a number");
    let end = steps.next().unwrap_or_default().to_owned();
    let (sender, receiver) = channel(1);
    tokio::spawn(async move {
        for count in 1..=tokens {
            let event = format!("data: {{\"usage\":{{\"total_tokens\":{count}}}}}\r\n\r\n");
            let (one, other) = event.as_bytes().split_at(event.len() / 2);
            for piece in [one, other] {
                if sender.send(Ok(Bytes::copy_from_slice(piece))).await.is_err() {
                    return;
                }
            }
        }
        match &*end {
            "break" => {
                let _ = sender.send(Err(io::Error::other("out of order"))).await;
            }
            "wait" => sender.closed().await,
            _ => {
                let _ = sender.send(Ok(Bytes::from_static(b"data: [DONE]\n\n"))).await;
            }
        }
    });
    let mut response = Response::new(Pieces(receiver));
    let events = header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, events);
    response
}

fn prompt(path: &str, max_tokens: u64) -> String {
    let body = format!("{{\"model\":\"small\",\"max_tokens\":{max_tokens}}}");
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Runs a hundred concurrent streams, each of which reserves `reserved` tokens and sends `written`.
/// Returns how many were admitted, and the highest usage.
async fn hundred_streams(
    limiter: &Arc<Limiter<Memory>>,
    reserved: u64,
    written: u64,
) -> (u64, u64) {
    let proxy = in_front(serve(model).await, limiter).await;
    let streams = (0..100).map(|_| {
        let (address, prompt) = (proxy.address, prompt(&format!("/{written}"), reserved));
        tokio::spawn(async move { exchange(address, prompt).await })
    });
    let streams: Vec<_> = streams.collect();
    let mut most = 0;
    let mut passed = 0;
    for stream in streams {
        while !stream.is_finished() {
            most = most.max(used(limiter).await.0);
            tokio::task::yield_now().await;
        }
        let answer = within(stream).await.expect("an answer");
        match &*statuses(&answer) {
            [200] => {
                let events = answer.matches("data: {").count();
                assert_eq!(u64::try_from(events).expect("a count"), written);
                passed += 1;
            }
            [429] => {}
            other => panic!("{other:?}: {answer}"),
        }
    }
    (passed, most)
}

#[tokio::test]
async fn a_hundred_streams_never_pass_the_limit() {
    let limiter = tokens(0);
    let (passed, most) = hundred_streams(&limiter, 30, 23).await;
    assert!((QUOTA / 30..=QUOTA / 23).contains(&passed), "{passed}");
    assert!(most <= QUOTA, "{most}");
    used_is(&limiter, (passed * 23, 0)).await;
}

#[tokio::test]
async fn streams_that_reserve_too_little_pass_it_by_the_overdraft_at_most() {
    let limiter = tokens(50);
    let (passed, most) = hundred_streams(&limiter, 1, 23).await;
    assert!(passed * 23 >= QUOTA, "{passed}");
    assert!(most <= QUOTA + 50, "{most}");
    used_is(&limiter, ((passed * 23).min(QUOTA + 50), 0)).await;
}

#[tokio::test]
async fn a_stream_that_breaks_and_one_whose_client_leaves_cost_what_they_wrote() {
    let limiter = tokens(0);
    let proxy = in_front(serve(model).await, &limiter).await;
    let broken = exchange(proxy.address, prompt("/9/break", 400)).await;
    assert_eq!(statuses(&broken), [200]);
    used_is(&limiter, (9, 0)).await;

    let mut client = Client::connect(proxy.address).await;
    client.send(prompt("/5/wait", 400)).await;
    client.read_until("tal_tokens\":5}}").await;
    assert_eq!(used(&limiter).await, (409, 400));
    drop(client);
    used_is(&limiter, (14, 0)).await;
}

/// Returns the reserved units of a request with this body, for an upstream that reports no cost.
/// The body has to arrive unchanged.
async fn reserved_by(fields: &str, sent: &str, body: &str) -> u64 {
    let limiter = tokens(0);
    let recorder = Recorder::start().await;
    let proxy = in_front(recorder.address, &limiter).await;
    let head = format!("POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n");
    let mut client = Client::connect(proxy.address).await;
    client.send(head).await;
    if fields.contains("100-continue") {
        client.read_until("HTTP/1.1 100 Continue\r\n\r\n").await;
    }
    client.send(sent).await;
    assert_eq!(statuses(&client.read_to_end().await), [200]);
    let observed = recorder.take_one();
    assert!(observed.body == body, "{} bytes arrived of {}", observed.body.len(), body.len());
    let length = fields.contains("content-length").then(|| body.len().to_string());
    let stated = observed.headers.get(header::CONTENT_LENGTH);
    assert_eq!(stated.map(|length| length.to_str().expect("digits").to_owned()), length);
    let used = used(&limiter).await;
    assert_eq!(used.1, 0);
    used.0
}

#[tokio::test]
async fn a_json_body_says_what_is_reserved_and_passes_on_unchanged() {
    const JSON: &str = "content-type: application/json\r\n";
    let body = "{\"max_tokens\": 77}";
    let length = |body: &str| format!("content-length: {}\r\n", body.len());
    let whole = format!("{JSON}{}", length(body));
    assert_eq!(reserved_by(&whole, body, body).await, 77);
    let chunked = "9\r\n{\"max_tok\r\n9\r\nens\": 77}\r\n0\r\n\r\n";
    let fields = format!("{JSON}transfer-encoding: chunked\r\n");
    assert_eq!(reserved_by(&fields, chunked, body).await, 77);
    // A body that cannot be read has no estimate.
    let expecting = format!("{whole}expect: 100-continue\r\n");
    assert_eq!(reserved_by(&expecting, body, body).await, 40);
    let text = format!("content-type: text/plain\r\n{}", length(body));
    assert_eq!(reserved_by(&text, body, body).await, 40);
    let zipped = format!("{whole}content-encoding: gzip\r\n");
    assert_eq!(reserved_by(&zipped, body, body).await, 40);
    let long = format!("{{\"max_tokens\":1,\"prompt\":\"{}\"}}", "a".repeat(256 * 1024));
    assert_eq!(reserved_by(&format!("{JSON}{}", length(&long)), &long, &long).await, 40);
    let chunked = format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    assert_eq!(reserved_by(&fields, &chunked, &long).await, 40);
}

#[tokio::test]
async fn a_body_that_breaks_off_while_it_is_read_is_refused_as_ever() {
    let limiter = tokens(0);
    let recorder = Recorder::start().await;
    let proxy = in_front(recorder.address, &limiter).await;
    let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
    let unsound = format!("{head}transfer-encoding: chunked\r\n\r\n5\r\n{{\"max!!");
    assert_eq!(statuses(&exchange(proxy.address, unsound).await), [400]);
    let mut client = Client::connect(proxy.address).await;
    client.send(format!("{head}content-length: 18\r\n\r\n{{\"max_tokens\"")).await;
    client.finish().await;
    client.read_to_end().await;
    assert!(recorder.take().is_empty());
    // The proxy still serves requests.
    let body = "{\"max_tokens\":3}";
    let sound = format!("{head}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let answer = exchange(proxy.address, sound).await;
    assert_eq!(statuses(&answer), [200]);
    assert_eq!(field(&answer, "via"), Some("1.1 tollgate"));
}
