//! A test that the memory for metering a response does not depend on the length or the content of
//! the response.
//!
//! A separate test binary, because it measures the allocations of the whole process.

use std::alloc::System;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use cap::Cap;
use http::{Request, Response, header};
use http_body::Frame;
use http_body_util::BodyExt;
use tollgate::Limiter;
use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::policy::{
    JsonPointer, LimitBinding, LimitRef, MatchMode, Meter, MeteredLimit, RequestMatch, Rule,
};
use tollgate::model::{Algorithm, Cost, Limit, Millis, Policy};
use tollgate::store::Memory;
use tollgate::tower::Layer;
use tower::{Layer as _, ServiceExt};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// The most memory in bytes for metering one response, at any time.
const MOST: usize = 16 * 1024;

/// A body that sends one chunk a hundred times: 100 MiB.
#[derive(Clone)]
struct Endless {
    start: Option<Bytes>,
    piece: Bytes,
    left: u32,
}

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.start.take().or_else(|| {
            self.left = self.left.checked_sub(1)?;
            Some(self.piece.clone())
        });
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }
}

fn limiter() -> Arc<Limiter<Memory>> {
    let window = FixedWindow::new(1_000, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    let limit = Arc::new(Limit::new("tokens", Algorithm::FixedWindow(window)).unwrap());
    let uses = vec![LimitRef { limit: 0, cost: Cost::ONE }];
    let mut rule = Rule::new("all", RequestMatch::default(), uses);
    let pointer = JsonPointer::parse("/usage/total").unwrap();
    rule.metered.push(MeteredLimit {
        limit: 0,
        meter: Arc::new(Meter::Json { pointer }),
        reserve: None,
    });
    let limits = vec![LimitBinding { limit, per: Vec::new() }];
    let policy = Policy::new(Vec::new(), limits, vec![rule], MatchMode::FirstMatch).unwrap();
    Arc::new(Limiter::new(policy, Memory::default()))
}

#[tokio::test]
async fn a_hundred_mebibytes_of_anything_take_no_memory() {
    let limiter = limiter();
    for (media_type, start, repeated) in [
        ("application/json", "", "["),
        ("application/json", "{\"", "k"),
        ("application/json", "{\"usage\":{\"total\":\"", "\\u00e9"),
        ("application/json", "{\"usage\":{\"total\":", "9"),
        ("application/json", "{\"text\":\"", "x"),
        ("text/event-stream", "data: {\"", "k"),
        ("text/event-stream", "", "data: {\"usage\":{\"total\":1}}\n\n"),
    ] {
        let piece = Bytes::from(repeated.repeat((1 << 20) / repeated.len()));
        let body = Endless { start: Some(Bytes::from(start)), piece, left: 100 };
        let service = tower::service_fn(move |_: Request<()>| {
            let mut response = Response::new(body.clone());
            let media_type = header::HeaderValue::from_static(media_type);
            response.headers_mut().insert(header::CONTENT_TYPE, media_type);
            async move { Ok::<_, Infallible>(response) }
        });
        let layered = Layer::new(Arc::clone(&limiter)).layer(service);
        let mut body = layered.oneshot(Request::new(())).await.unwrap().into_body();
        let before = ALLOCATED.allocated();
        let mut most = before;
        while let Some(frame) = body.frame().await {
            drop(frame.unwrap());
            most = most.max(ALLOCATED.allocated());
        }
        let grown = most.saturating_sub(before);
        assert!(grown <= MOST, "{grown} bytes for {start:?} and {repeated:?} again and again");
    }
}
