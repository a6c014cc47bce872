//! Decisions for the sub-requests of other proxies.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use parking_lot::Mutex;
use tollgate::model::{
    Admission, Algorithm, Charge, DecisionSource, Operation, Readings, Store, StoreError, Timestamp,
};
use tollgate::observe::Decisions;
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock};
use tollgate_server::{HttpOptions, Peer};

use crate::http::world::{Answered, START, World};

const POLICY: &str = "
subjects: { address: { client_address: {}, ipv6_prefix: 64 } }
limits:
  core:
    quota: 100
    window: 60s
    per: address
    candidate: { algorithm: concurrency, quota: 1, permit_ttl: 60s }
rules: [{ limits: core }]
";

/// Sends the sub-request of another proxy for a request of its client.
async fn authorized(world: &World) -> Answered {
    let request = Request::get("/v1/authorize")
        .header("x-forwarded-method", "GET")
        .header("x-forwarded-uri", "/")
        .header("x-forwarded-for", "192.0.2.7")
        .extension(Peer(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)))));
    world.call(request.body(Body::empty()).unwrap()).await
}

/// The end of the request is not reported, so nothing would release the permit.
#[tokio::test]
async fn a_sub_request_holds_no_permit_of_a_candidate() {
    let policy = tollgate_policy::parse("test.yaml", POLICY).unwrap().policy;
    let decisions = Arc::new(Decisions::new(&policy));
    let clock = Arc::new(ManualClock::new(START));
    let limiter = Limiter::new(policy, Memory::default()).with_clock(Arc::clone(&clock));
    let limiter = Arc::new(limiter.with_observer(Arc::clone(&decisions)));
    let world = World::around(limiter, clock, HttpOptions::default());
    for _ in 0..3 {
        let answered = authorized(&world).await;
        assert_eq!(answered.status, StatusCode::OK);
        assert!(answered.headers.contains_key("tollgate-receipt"));
    }
    let trials = decisions.limits()[0].trials;
    assert_eq!((trials.both_admit, trials.only_candidate_refuses), (3, 0));
}

/// Otherwise a proxy takes a refusal with 503 for a page of its own, and admits the request.
#[tokio::test]
async fn every_answer_shows_that_tollgate_decided() {
    let text = POLICY.replace("quota: 100", "quota: 1")
        + "answers: { refuse: { status: 503, body: { html: '<p>Wait</p>', text: Wait } } }\n";
    let world = World::of(tollgate_policy::parse("test.yaml", &text).unwrap().policy);
    let decided = |answered: &Answered| {
        (
            answered.status.as_u16(),
            answered.headers["tollgate-decision"].to_str().unwrap().to_owned(),
        )
    };
    assert_eq!(decided(&authorized(&world).await), (200, "admitted".into()));
    assert_eq!(decided(&authorized(&world).await), (503, "refused".into()));
    let loopback = Peer(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))));
    let stranger = Peer(Some(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 1))));
    for (peer, status) in [(loopback, 400), (stranger, 403)] {
        let request = Request::get("/v1/authorize").extension(peer).body(Body::empty()).unwrap();
        assert_eq!(decided(&world.call(request).await), (status, "refused".into()));
    }
}

/// A store that answers charges of permits as a fallback does.
#[derive(Clone, Default)]
struct PermitsOfFallback {
    memory: Arc<Memory>,
    /// Whether each charge of a permit was admitted.
    admissions: Arc<Mutex<Vec<Admission>>>,
}

impl Store for PermitsOfFallback {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let readings = self.memory.apply(now, charges).await?;
        let takes_permit = charges.iter().any(|charge| {
            matches!(charge.limit.algorithm(), Algorithm::Concurrency(_))
                && matches!(charge.operation, Operation::Charge { .. })
        });
        if !takes_permit {
            return Ok(readings);
        }
        self.admissions.lock().extend(readings.iter().map(|reading| reading.admission));
        Ok(readings.with_source(DecisionSource::Fallback(StoreError::Unavailable)))
    }
}

#[tokio::test]
async fn a_sub_request_holds_no_permit_that_the_fallback_gave_for_a_candidate() {
    let policy = tollgate_policy::parse("test.yaml", POLICY).unwrap().policy;
    let clock = Arc::new(ManualClock::new(START));
    let store = PermitsOfFallback::default();
    let limiter = Limiter::new(policy, store.clone()).with_clock(Arc::clone(&clock));
    let world = World::around(Arc::new(limiter), clock, HttpOptions::default());
    for _ in 0..3 {
        assert_eq!(authorized(&world).await.status, StatusCode::OK);
    }
    assert_eq!(*store.admissions.lock(), [Admission::Now; 3]);
}
