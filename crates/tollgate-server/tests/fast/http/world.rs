//! A listener over the memory store, on a clock that only the test advances.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use tollgate::model::{Policy, Store, Timestamp};
use tollgate::overrides::OverrideStore;
use tollgate::store::Memory;
use tollgate::tenants::TenantStore;
use tollgate::{HashKey, Limiter, ManualClock, Observer, Revision, Tracer};
use tollgate_server::Access;
use tollgate_server::http::{HttpOptions, router};
use tower::ServiceExt;

pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) const POLICY: &str = r#"
subjects:
  token:   { header: authorization }
  address: { client_address: {}, ipv6_prefix: 64 }
limits:
  core:      { quota: 3, window: 60s, per: token }
  search:    { quota: 2, window: 60s, per: [token, address] }
  anonymous: { quota: 2, window: 60s, per: address, resource: core }
  everybody: { quota: 1_000, window: 60s, visible: false }
  flight:    { algorithm: concurrency, quota: 2, permit_ttl: 10s, per: token, visible: false }
rules:
  - name: search
    match:  { path: "/search/**", has: token }
    limits: [search, flight]
  - name: read
    match:  { has: token }
    limits: [core, everybody]
  - name: stranger
    limits: [anonymous]
answers:
  headers: [ietf, github]
"#;

pub(crate) fn policy() -> Policy {
    tollgate_policy::parse("test.yaml", POLICY).unwrap().policy
}

/// A listener and its clock.
pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    router: Router,
}

/// A response of the listener.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::over(Memory::default(), HttpOptions::default())
    }

    /// Returns a listener with this policy, over an empty store.
    pub(crate) fn of(policy: Policy) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let limiter = Limiter::new(Revision::new(policy, "v1"), Memory::default());
        let limiter = Arc::new(limiter.with_clock(Arc::clone(&clock)));
        Self { clock, router: router(limiter, HttpOptions::default()) }
    }

    /// Returns a listener for administrators with this policy, over an empty store. Its tenants are
    /// in this process.
    pub(crate) fn with_tenants(policy: Policy) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let limiter = Limiter::new(Revision::new(policy, "v1"), Memory::default());
        let limiter = Arc::new(limiter.with_clock(Arc::clone(&clock)));
        let tenants = Arc::new(Arc::clone(limiter.tenants())) as Arc<dyn TenantStore>;
        let (admin, tenants) = (Some(Access::Open), Some(tenants));
        let options = HttpOptions { admin, tenants, ..HttpOptions::default() };
        Self { clock, router: router(limiter, options) }
    }

    /// Returns a listener over `limiter`, whose clock is `clock`.
    pub(crate) fn around<S: Store + 'static>(
        limiter: Arc<Limiter<S>>,
        clock: Arc<ManualClock>,
        options: HttpOptions,
    ) -> Self {
        Self { clock, router: router(limiter, options) }
    }

    pub(crate) fn over<S: Store + 'static>(store: S, options: HttpOptions) -> Self {
        Self::observed(store, options, ())
    }

    pub(crate) fn observed<S: Store + 'static>(
        store: S,
        options: HttpOptions,
        observer: impl Observer + 'static,
    ) -> Self {
        Self::with(store, options, observer, Tracer::default())
    }

    pub(crate) fn traced<S: Store + 'static>(
        store: S,
        options: HttpOptions,
        tracer: Tracer,
    ) -> Self {
        Self::with(store, options, (), tracer)
    }

    fn with<S: Store + 'static>(
        store: S,
        options: HttpOptions,
        observer: impl Observer + 'static,
        tracer: Tracer,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let limiter = Limiter::new(Revision::new(policy(), "v1"), store)
            .with_key(HashKey::from_secret(b"a test's key"));
        let limiter = limiter.with_clock(Arc::clone(&clock)).with_observer(observer);
        let limiter = Arc::new(limiter.with_tracer(tracer));
        let kept = options.admin.as_ref().map(|_| Arc::clone(limiter.overrides()));
        let overrides = kept.map(|kept| -> Arc<dyn OverrideStore> { Arc::new(kept) });
        let options = HttpOptions { overrides, ..options };
        Self { clock, router: router(limiter, options) }
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answered {
        self.post_with(path, &[], body).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answered {
        let mut request = Request::post(path).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.call(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl Into<Body>) -> Answered {
        let request = Request::put(path).header("content-type", "application/json");
        self.call(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answered {
        self.call(Request::delete(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.call(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> Answered {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        Answered { status: parts.status, headers: parts.headers, bytes }
    }
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    /// Returns the document of a successful response.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", String::from_utf8_lossy(&self.bytes));
        assert_eq!(self.headers["content-type"], "application/json");
        self.json()
    }

    /// Returns the name of the problem. Its status is `status`, both in HTTP and in the document.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> String {
        let printed = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status.as_u16(), status, "{printed}");
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        let name = problem["type"].as_str().and_then(|name| name.rsplit(':').next());
        name.unwrap().to_owned()
    }
}
