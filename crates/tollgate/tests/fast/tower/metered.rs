//! Tests of costs that the response reports. Units are reserved when a request arrives, and the
//! cost is settled when the response ends.

use std::convert::Infallible;
use std::io;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tollgate::model::policy::answers::ResponseSettings;
use tollgate::model::policy::{
    JsonPointer, LimitRef, Meter, MeteredLimit, ReservationAmount, ReservationSource, Rule,
    RuleMode,
};
use tollgate::model::{Cost, Millis, Policy, RequestAttributes, ReservationTerms};
use tollgate::tower::{Body, JsonBody, Layer};
use tollgate::{Limiter, ManualClock, store::Memory};
use tower::{Layer as _, ServiceExt};

use super::world::{START, policy, rule, window};

/// A body that the test sends in pieces.
struct Pieces(UnboundedReceiver<io::Result<Bytes>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// A limit of 100 units per minute in front of a service that sends the test's responses.
struct World {
    limiter: Arc<Limiter<Memory>>,
    clock: Arc<ManualClock>,
    seen_headers: Arc<Mutex<HeaderMap>>,
}

const HOLD: Millis = Millis::from_secs(3);

fn units(count: u64) -> Cost {
    Cost::new(count).unwrap()
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn tokens() -> Meter {
    Meter::Json { pointer: pointer("/usage/total") }
}

/// Returns a rule for requests that cost the units that `meter` reads. A request reserves
/// `reserve`, or 40 units if `reserve` is `None`.
fn metered(meter: Meter, reserve: Option<ReservationAmount>, mode: RuleMode) -> Rule {
    let mut rule = rule("metered", "/**", &[], mode);
    rule.limits.push(LimitRef { limit: 0, cost: units(40) });
    rule.metered.push(MeteredLimit { limit: 0, meter: Arc::new(meter), reserve });
    rule
}

fn of(rules: Vec<Rule>) -> Policy {
    let terms = ReservationTerms { max: HOLD, ..ReservationTerms::default() };
    let answers = ResponseSettings { refund_statuses: vec![304], ..ResponseSettings::default() };
    let units = window("units", 100).with_reservation_terms(terms).unwrap();
    policy(vec![units, window("single", 1)], rules, answers)
}

impl World {
    fn new(meter: Meter) -> Self {
        Self::by(of(vec![metered(meter, None, RuleMode::Enforce)]))
    }

    fn by(policy: Policy) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let limiter = Limiter::new(policy, Memory::default()).with_clock(Arc::clone(&clock));
        Self { limiter: Arc::new(limiter), clock, seen_headers: Arc::default() }
    }

    /// Sends a request. Its response is `answer` with the body pieces that the test sends.
    async fn send(
        &self,
        request: Request<()>,
        answer: Response<()>,
    ) -> (Response<Body<Pieces>>, UnboundedSender<io::Result<Bytes>>) {
        let (sender, pieces) = unbounded_channel();
        let answer = Arc::new(Mutex::new(Some(answer.map(|()| Pieces(pieces)))));
        let seen_headers = Arc::clone(&self.seen_headers);
        let service = tower::service_fn(move |request: Request<()>| {
            *seen_headers.lock() = request.headers().clone();
            let answer = answer.lock().take().unwrap();
            async move { Ok::<_, Infallible>(answer) }
        });
        let limited = Layer::new(Arc::clone(&self.limiter)).layer(service);
        (limited.oneshot(request).await.unwrap(), sender)
    }

    async fn get(
        &self,
        answer: Response<()>,
    ) -> (Response<Body<Pieces>>, UnboundedSender<io::Result<Bytes>>) {
        self.send(Request::new(()), answer).await
    }

    /// Returns the used units of the limit, and how many of these units are only reserved.
    async fn used(&self) -> (u64, u64) {
        let attributes = RequestAttributes {
            method: "GET",
            path: "/",
            query: None,
            host: None,
            peer: None,
            headers: &(),
        };
        let policy = self.limiter.policy();
        let plan = policy.plan(&attributes, self.limiter.key());
        let mut planned = [plan.enforced, plan.shadowed].concat();
        planned.retain(|planned| planned.limit.name() == "units");
        let (evaluation, _) =
            self.limiter.peek_planned(self.limiter.now(), &planned).await.unwrap();
        (evaluation.statuses[0].used, evaluation.statuses[0].reserved)
    }
}

fn answer(status: u16, fields: &[(&str, &str)]) -> Response<()> {
    let mut answer = Response::builder().status(status);
    for (name, value) in fields {
        answer = answer.header(*name, *value);
    }
    answer.body(()).unwrap()
}

fn json() -> Response<()> {
    answer(200, &[("content-type", "application/json")])
}

fn events() -> Response<()> {
    answer(200, &[("content-type", "text/event-stream")])
}

fn piece(text: &str) -> io::Result<Bytes> {
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

#[tokio::test]
async fn what_the_answer_reports_takes_the_place_of_what_was_reserved() {
    let world = World::new(tokens());
    let (response, body) = world.get(json()).await;
    assert_eq!(world.seen_headers.lock()[ACCEPT_ENCODING], "identity");
    body.send(piece("{\"text\":\"hello\",\"usage\":{\"to")).unwrap();
    body.send(piece("tal\":7}}")).unwrap();
    assert_eq!(world.used().await, (40, 40));
    drop(body);
    let whole = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(whole, "{\"text\":\"hello\",\"usage\":{\"total\":7}}");
    assert_eq!(world.used().await, (7, 0));
}

#[tokio::test]
async fn a_header_reports_what_an_answer_costs() {
    let header = || Meter::Header { field: "x-cost".into() };
    for (value, used) in [("12", 12), ("0", 0), ("twelve", 40), ("-1", 40), ("1.5", 40)] {
        let world = World::new(header());
        let (response, _) = world.get(answer(200, &[("x-cost", value)])).await;
        assert!(!world.seen_headers.lock().contains_key(ACCEPT_ENCODING));
        drop(response);
        assert_eq!(world.used().await, (used, 0), "{value}");
    }
    let world = World::new(header());
    drop(world.get(answer(200, &[])).await);
    assert_eq!(world.used().await, (40, 0));
    // A cost above the limit charges the whole limit.
    let world = World::new(header());
    drop(world.get(answer(200, &[("x-cost", "99999999999999999999999")])).await);
    assert_eq!(world.used().await, (100, 0));
}

#[tokio::test]
async fn a_stream_that_breaks_or_loses_its_client_costs_what_was_seen() {
    let seen = "data: {\"usage\":{\"total\":5}}\n\ndata: {\"usage\":{\"total\":9}}\n\ndata: {\"usa";
    let world = World::new(tokens());
    let (response, body) = world.get(events()).await;
    body.send(piece(seen)).unwrap();
    body.send(Err(io::Error::other("the service broke"))).unwrap();
    response.into_body().collect().await.map(drop).expect_err("it broke");
    assert_eq!(world.used().await, (9, 0));

    let world = World::new(tokens());
    let (response, body) = world.get(events()).await;
    body.send(piece(seen)).unwrap();
    let mut stream = response.into_body();
    stream.frame().await.unwrap().unwrap();
    assert_eq!(world.used().await, (40, 40));
    drop(stream);
    assert_eq!(world.used().await, (9, 0));
}

#[tokio::test]
async fn size_counts_as_far_as_it_was_sent() {
    let world = World::new(Meter::Size { bytes: NonZeroU64::new(10).unwrap() });
    let (response, body) = world.get(answer(200, &[])).await;
    body.send(piece("one")).unwrap();
    body.send(piece("and eleven!")).unwrap();
    body.send(Err(io::Error::other("the service broke"))).unwrap();
    response.into_body().collect().await.map(drop).expect_err("it broke");
    assert_eq!(world.used().await, (2, 0));
}

#[tokio::test]
async fn time_counts_from_the_arrival_to_the_end_of_the_body() {
    let world = World::new(Meter::Time { each: Millis::new(10) });
    let (response, body) = world.get(answer(200, &[])).await;
    world.clock.advance(Millis::new(301));
    body.send(piece("a report")).unwrap();
    let mut stream = response.into_body();
    stream.frame().await.unwrap().unwrap();
    world.clock.advance(Millis::new(100));
    drop(body);
    assert!(stream.frame().await.is_none());
    assert_eq!(world.used().await, (41, 0));
}

#[tokio::test]
async fn a_free_answer_releases_what_was_reserved() {
    let world = World::new(Meter::Header { field: "x-cost".into() });
    let (response, _) = world.get(answer(304, &[("x-cost", "12")])).await;
    assert_eq!(world.used().await, (0, 0));
    drop(response);
    assert_eq!(world.used().await, (0, 0));
}

#[tokio::test]
async fn a_service_that_fails_costs_what_was_reserved_or_the_time_it_took() {
    for (meter, used) in [(tokens(), 40), (Meter::Time { each: Millis::new(10) }, 3)] {
        let world = World::new(meter);
        let clock = Arc::clone(&world.clock);
        let service = tower::service_fn(move |_: Request<()>| {
            clock.advance(Millis::new(21));
            async { Err::<Response<Pieces>, _>(io::Error::other("out of order")) }
        });
        let limited = Layer::new(Arc::clone(&world.limiter)).layer(service);
        limited.oneshot(Request::new(())).await.map(drop).expect_err("it failed");
        assert_eq!(world.used().await, (used, 0));
    }
}

#[tokio::test]
async fn a_request_says_how_much_to_reserve() {
    let reserve = |source, at_most| Some(ReservationAmount { source, at_least: None, at_most });
    let from_body = ReservationSource::Json { pointer: pointer("/max_tokens") };
    let by_body = metered(tokens(), reserve(from_body, Some(units(60))), RuleMode::Enforce);
    let world = World::by(of(vec![by_body]));
    for (body, held) in [
        ("{\"max_tokens\":25}", 25),
        ("{\"max_tokens\":900}", 60),
        ("{\"max_tokens\":0}", 1),
        ("{\"max_tokens\":-3}", 40),
        ("max_tokens", 40),
        ("{\"max_tokens\":2.5e1}", 25),
        ("{\"max_tokens\":1,\"max_tokens\":2}", 40),
    ] {
        let mut request = Request::new(());
        request.extensions_mut().insert(JsonBody(Bytes::from_static(body.as_bytes())));
        let running = world.send(request, events()).await;
        assert_eq!(world.used().await.1, held, "{body}");
        drop(running);
        world.clock.advance(Millis::from_secs(60));
    }
    let from_header = ReservationSource::Header { field: "x-max".into() };
    let by_header = metered(tokens(), reserve(from_header, None), RuleMode::Enforce);
    let world = World::by(of(vec![by_header]));
    let asking = |max: &str| Request::builder().header("x-max", max).body(()).unwrap();
    let running = world.send(asking("55"), events()).await;
    assert_eq!(world.used().await, (55, 55));
    // A cost that can never fit is refused. The limiter does not reduce the cost to one that fits.
    let refused = world.send(asking("101"), events()).await;
    assert_eq!(refused.0.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_stream_holds_what_it_reserved_for_as_long_as_it_runs() {
    let world = World::new(tokens());
    let (response, body) = world.get(events()).await;
    for _ in 0..20 {
        // Twenty seconds, with a reservation time of three.
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.clock.advance(Millis::from_secs(1));
        assert_eq!(world.used().await, (40, 40));
    }
    body.send(piece("data: {\"usage\":{\"total\":3}}\n\n")).unwrap();
    drop(body);
    response.into_body().collect().await.unwrap();
    assert_eq!(world.used().await, (3, 0));
}

#[tokio::test]
async fn a_rule_in_shadow_mode_is_settled_too() {
    let world = World::by(of(vec![metered(tokens(), None, RuleMode::Shadow)]));
    let (response, body) = world.get(json()).await;
    assert_eq!(world.used().await, (40, 40));
    body.send(piece("{\"usage\":{\"total\":7}}")).unwrap();
    drop(body);
    response.into_body().collect().await.unwrap();
    assert_eq!(world.used().await, (7, 0));
}

#[tokio::test]
async fn a_refused_request_reserves_nothing_of_a_rule_in_shadow_mode() {
    let single = rule("single", "/**", &[1], RuleMode::Enforce);
    let world = World::by(of(vec![metered(tokens(), None, RuleMode::Shadow), single]));
    drop(world.get(answer(304, &[])).await);
    drop(world.get(answer(200, &[("content-type", "application/json")])).await);
    assert_eq!(world.get(json()).await.0.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.used().await, (40, 0), "only the served request is charged");
}

#[tokio::test]
async fn rules_that_meet_one_limit_are_settled_together() {
    let mut fixed = rule("fixed", "/**", &[], RuleMode::Enforce);
    fixed.limits.push(LimitRef { limit: 0, cost: units(5) });
    let size = Meter::Size { bytes: NonZeroU64::new(10).unwrap() };
    let rules = vec![
        fixed,
        metered(tokens(), None, RuleMode::Enforce),
        metered(size, None, RuleMode::Enforce),
    ];
    let world = World::by(of(rules));
    let (response, body) = world.get(json()).await;
    assert_eq!(world.used().await, (85, 85));
    body.send(piece("{\"usage\":{\"total\":7}}")).unwrap();
    drop(body);
    response.into_body().collect().await.unwrap();
    assert_eq!(world.used().await, (5 + 7 + 3, 0));
}

#[tokio::test]
async fn who_never_sees_the_answer_charges_what_would_be_reserved() {
    let world = World::new(tokens());
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let decision = world.limiter.check(&attributes).await;
    assert!(decision.reserved.is_none() && decision.receipt.is_some());
    assert_eq!(world.used().await, (40, 0));
}
