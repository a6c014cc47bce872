//! A service behind the layer, with a manual clock.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tollgate::model::algo::{Anchor, Concurrency, FixedWindow};
use tollgate::model::policy::{
    Dimension, HeaderProfile, LimitBinding, LimitRef, MatchMode, PathPattern, RequestMatch,
    ResponseSettings, Rule, RuleMode, SubjectSource,
};
use tollgate::model::{Algorithm, Cost, Limit, Millis, Policy, Store, Timestamp};
use tollgate::store::Memory;
use tollgate::tower::{Body, Layer, Peer, UpstreamFailed, WhileUpgraded, upgraded};
use tollgate::{Limiter, ManualClock};
use tower::{Layer as _, ServiceExt};

pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The address of the client.
pub(crate) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

pub(crate) fn window(name: &str, quota: u64) -> Limit {
    let window = FixedWindow::new(quota, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
}

pub(crate) fn concurrent(quota: u64) -> Limit {
    let limit = Concurrency::new(quota, Millis::from_secs(30)).unwrap();
    Limit::new("concurrent", Algorithm::Concurrency(limit)).unwrap()
}

pub(crate) fn rule(name: &str, path: &str, limits: &[usize], mode: RuleMode) -> Rule {
    let paths = vec![PathPattern::parse(path).unwrap()];
    let limits = limits.iter().map(|limit| LimitRef { limit: *limit, cost: Cost::ONE }).collect();
    Rule { mode, ..Rule::new(name, RequestMatch { paths, ..RequestMatch::default() }, limits) }
}

/// Returns a policy with `limits`, which all count by address.
pub(crate) fn policy(limits: Vec<Limit>, rules: Vec<Rule>, answers: ResponseSettings) -> Policy {
    let source = SubjectSource::ClientAddress { ipv4_prefix: 32, ipv6_prefix: 64 };
    let address = Dimension { name: "address".into(), source };
    let limits =
        limits.into_iter().map(|limit| LimitBinding { limit: Arc::new(limit), per: vec![0] });
    let policy =
        Policy::new(vec![address], limits.collect(), rules, MatchMode::AllMatches).unwrap();
    policy.with_answers(answers)
}

pub(crate) fn github() -> ResponseSettings {
    ResponseSettings { headers: vec![HeaderProfile::GitHub], ..ResponseSettings::default() }
}

/// A limiter over a store, and a service behind the limiter.
pub(crate) struct World<S = Memory> {
    pub(crate) limiter: Arc<Limiter<S>>,
    pub(crate) clock: Arc<ManualClock>,
    /// The semaphore of `/slow`. Each permit lets one request for `/slow` be answered.
    pub(crate) gate: Arc<Semaphore>,
    /// The connections of `/upgrade`.
    pub(crate) tunnels: Arc<Mutex<Vec<WhileUpgraded>>>,
}

impl World {
    pub(crate) fn new(policy: Policy) -> Self {
        Self::over(policy, Memory::default())
    }
}

impl<S: Store + 'static> World<S> {
    pub(crate) fn over(policy: Policy, store: S) -> Self {
        Self::around(Limiter::new(policy, store))
    }

    pub(crate) fn around(limiter: Limiter<S>) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let limiter = Arc::new(limiter.with_clock(Arc::clone(&clock)));
        let gate = Arc::new(Semaphore::new(0));
        Self { limiter, clock, gate, tunnels: Arc::default() }
    }

    /// Sends a request to a service that responds by path: `/304`, `/401`, `/500`, `/gone`, `/slow` and
    /// `/slow/401` after the gate's permit, `/upgrade` with another protocol, and 200 for all others.
    pub(crate) fn get(
        &self,
        path: &str,
    ) -> impl Future<Output = Response<Body<Full<Bytes>>>> + Send + use<S> {
        self.get_accepting(path, None)
    }

    /// Sends a `GET` like [`Self::get`], with a header field `accept`.
    pub(crate) fn get_accepting(
        &self,
        path: &str,
        accept: Option<&'static str>,
    ) -> impl Future<Output = Response<Body<Full<Bytes>>>> + Send + use<S> {
        let (gate, tunnels) = (Arc::clone(&self.gate), Arc::clone(&self.tunnels));
        let service = tower::service_fn(move |request: Request<()>| {
            let (gate, tunnels) = (Arc::clone(&gate), Arc::clone(&tunnels));
            async move {
                let mut response = served(request.uri().path(), &gate).await;
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    let (position, tunnel) = upgraded();
                    response.extensions_mut().insert(position);
                    tunnels.lock().push(tunnel);
                }
                Ok::<_, Infallible>(response)
            }
        });
        let limited = Layer::new(Arc::clone(&self.limiter)).layer(service);
        let mut request = Request::new(());
        *request.uri_mut() = path.parse().unwrap();
        let accept = accept.map(HeaderValue::from_static);
        request.headers_mut().extend(accept.map(|accept| (header::ACCEPT, accept)));
        let peer = SocketAddr::new(PEER, 4711);
        request.extensions_mut().insert(Peer(peer));
        async move { limited.oneshot(request).await.unwrap() }
    }
}

async fn served(path: &str, gate: &Semaphore) -> Response<Full<Bytes>> {
    if path.starts_with("/slow") {
        gate.acquire().await.unwrap().forget();
    }
    let mut response = Response::new(Full::new(Bytes::from_static(b"served")));
    *response.status_mut() = match path {
        "/304" => StatusCode::NOT_MODIFIED,
        "/401" | "/slow/401" => StatusCode::UNAUTHORIZED,
        "/500" => StatusCode::INTERNAL_SERVER_ERROR,
        "/gone" => StatusCode::BAD_GATEWAY,
        "/upgrade" => StatusCode::SWITCHING_PROTOCOLS,
        _ => StatusCode::OK,
    };
    if path == "/gone" {
        response.extensions_mut().insert(UpstreamFailed);
    }
    response
}

pub(crate) fn field<'a, B>(response: &'a Response<B>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

pub(crate) async fn text(response: Response<Body<Full<Bytes>>>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}
