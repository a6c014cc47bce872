//! A tower layer that puts a quota or a limiter in front of any HTTP service.

use std::fmt;
use std::future::{Future, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Extensions, Request, Response, StatusCode};
use tollgate_core::Store;

use crate::quota::Quota;
use crate::request_limiter::{BuildError, RequestLimiter, RequestLimiterBuilder};
use crate::store::Memory;
use crate::tower::{Body, Layer, Peer, PeerFrom, Service, answer};

/// Limits requests in front of any HTTP service: axum, hyper, tonic, or another tower service.
///
/// Refuses with 429, `retry-after` and problem details (RFC 9457), and writes `ratelimit` and
/// `ratelimit-policy` into every response. Clones share their counters.
///
/// ```
/// use axum::{Router, routing::get};
/// use tollgate::{Quota, RateLimitLayer};
///
/// let app: Router = Router::new()
///     .route("/", get(|| async { "hello" }))
///     .layer(RateLimitLayer::by_ip(Quota::per_second(10)));
/// # let _ = app;
/// ```
///
/// # The client's address
///
/// A limit by address, and a rule for networks, need the address of the connection. The layer finds
/// the address in the request's extensions: as [`Peer`], or, with the crate's feature `axum`, as
/// axum's `ConnectInfo<SocketAddr>`, which axum provides if it serves with
/// `app.into_make_service_with_connect_info::<SocketAddr>()`. [`peer_from`](Self::peer_from) reads
/// other extensions. Without an address, the layer answers 500 and logs what to do, because one
/// counter for all clients would let one client lock out the others.
pub struct RateLimitLayer<S = Memory> {
    limiter: RequestLimiter<S>,
    peer_from: PeerFrom,
}

impl RateLimitLayer {
    /// Limits each client address by `quota`, in memory. An IPv6 address is counted by its `/64`
    /// network.
    ///
    /// ```
    /// use tollgate::{Quota, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::by_ip(Quota::per_minute(100).burst(20));
    /// # let _ = layer;
    /// ```
    ///
    /// # Panics
    /// Panics if the quota is invalid, for example zero. Use [`try_by_ip`](Self::try_by_ip) for
    /// quotas that are read from a configuration.
    #[track_caller]
    #[must_use]
    pub fn by_ip(quota: Quota) -> Self {
        match Self::try_by_ip(quota) {
            Ok(layer) => layer,
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates the layer of [`by_ip`](Self::by_ip), and returns an error if the quota is invalid.
    ///
    /// ```
    /// use tollgate::{Quota, RateLimitLayer};
    ///
    /// assert!(RateLimitLayer::try_by_ip(Quota::per_minute(0)).is_err());
    /// ```
    ///
    /// # Errors
    /// [`BuildError`] if the quota is invalid. The error states the mistake.
    pub fn try_by_ip(quota: Quota) -> Result<Self, BuildError> {
        let builder = RequestLimiterBuilder::new();
        Ok(Self::new(builder.limit("per-address", quota.per("ip")).build()?))
    }

    /// Limits each key by `quota`, in memory. `read` reads the key from the request. Requests
    /// without a key share one counter.
    ///
    /// ```
    /// use http::request::Parts;
    /// use tollgate::{Quota, RateLimitLayer};
    ///
    /// #[derive(Clone)]
    /// struct UserId(u64);
    ///
    /// let layer = RateLimitLayer::by_key(Quota::per_second(10), |parts: &Parts| {
    ///     parts.extensions.get::<UserId>().map(|user| user.0.to_string())
    /// });
    /// # let _ = layer;
    /// ```
    ///
    /// # Panics
    /// Panics if the quota is invalid, for example zero.
    #[track_caller]
    #[must_use]
    pub fn by_key(
        quota: Quota,
        read: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let builder = RequestLimiterBuilder::new().subject("key", read);
        match builder.limit("per-key", quota.per("key")).build() {
            Ok(limiter) => Self::new(limiter),
            Err(error) => panic!("{error}"),
        }
    }
}

impl<S: Store + 'static> RateLimitLayer<S> {
    /// Creates a layer that decides by `limiter`.
    ///
    /// ```
    /// use tollgate::{Quota, RateLimitLayer, RateLimiter, Rule};
    ///
    /// let limiter = RateLimiter::builder()
    ///     .limit("per-address", Quota::per_second(10).per("ip"))
    ///     .rule(Rule::path("/health").exempt())
    ///     .build()?;
    /// let layer = RateLimitLayer::new(limiter);
    /// # let _ = layer;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn new(limiter: impl Into<RequestLimiter<S>>) -> Self {
        Self { limiter: limiter.into(), peer_from: known_peer }
    }

    /// Uses `peer_from` to read the client's address from another extension of the request.
    ///
    /// ```
    /// use std::net::SocketAddr;
    /// use tollgate::{Quota, RateLimitLayer};
    ///
    /// #[derive(Clone)]
    /// struct Connection {
    ///     remote: SocketAddr,
    /// }
    ///
    /// let layer = RateLimitLayer::by_ip(Quota::per_second(10))
    ///     .peer_from(|extensions| Some(extensions.get::<Connection>()?.remote));
    /// # let _ = layer;
    /// ```
    #[must_use]
    pub fn peer_from(self, peer_from: fn(&Extensions) -> Option<SocketAddr>) -> Self {
        Self { peer_from, ..self }
    }

    /// Returns the limiter, for example to share its counters with other code.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimitLayer};
    /// let layer = RateLimitLayer::by_ip(Quota::per_second(10));
    /// let limiter = layer.limiter().clone();
    /// # let _ = limiter;
    /// ```
    #[must_use]
    pub const fn limiter(&self) -> &RequestLimiter<S> {
        &self.limiter
    }
}

/// Finds the client's address in the extensions in which the supported servers store it.
fn known_peer(extensions: &Extensions) -> Option<SocketAddr> {
    if let Some(Peer(peer)) = extensions.get::<Peer>() {
        return Some(*peer);
    }
    #[cfg(feature = "axum")]
    if let Some(connection) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
        return Some(connection.0);
    }
    None
}

impl<S, Inner> tower_layer::Layer<Inner> for RateLimitLayer<S>
where
    S: Store + 'static,
{
    type Service = RateLimitService<Inner, S>;

    fn layer(&self, inner: Inner) -> Self::Service {
        let layer = Layer::new(Arc::clone(self.limiter.limiter())).with_peer_from(self.peer_from);
        let inner = tower_layer::Layer::layer(&layer, inner);
        RateLimitService { inner, limiter: self.limiter.clone(), peer_from: self.peer_from }
    }
}

impl<S> Clone for RateLimitLayer<S> {
    fn clone(&self) -> Self {
        Self { limiter: self.limiter.clone(), peer_from: self.peer_from }
    }
}

impl<S> fmt::Debug for RateLimitLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}

/// A service behind a [`RateLimitLayer`].
///
/// ```
/// use http::{Request, Response};
/// use tollgate::tower::Peer;
/// use tollgate::{Quota, RateLimitLayer};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let hello = service_fn(|_request: Request<()>| async {
///     Ok::<_, std::convert::Infallible>(Response::new(()))
/// });
/// let service = RateLimitLayer::by_ip(Quota::per_hour(1)).layer(hello);
/// let mut statuses = Vec::new();
/// for _ in 0..2 {
///     let mut request = Request::new(());
///     request.extensions_mut().insert(Peer("192.0.2.7:4711".parse()?));
///     statuses.push(service.clone().oneshot(request).await?.status().as_u16());
/// }
/// assert_eq!(statuses, [200, 429]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct RateLimitService<Inner, S = Memory> {
    inner: Service<Inner, S>,
    limiter: RequestLimiter<S>,
    peer_from: PeerFrom,
}

type Answer<B, E> = Pin<Box<dyn Future<Output = Result<Response<Body<B>>, E>> + Send>>;

impl<Inner, S, In, Out> tower_service::Service<Request<In>> for RateLimitService<Inner, S>
where
    Inner: tower_service::Service<Request<In>, Response = Response<Out>> + Clone + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Send,
    S: Store + 'static,
    In: Send + 'static,
    Out: Send + 'static,
{
    type Response = Response<Body<Out>>;
    type Error = Inner::Error;
    type Future = Answer<Out, Inner::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        if (self.peer_from)(request.extensions()).is_none() && self.limiter.needs_peer() {
            return Box::pin(ready(Ok(without_peer())));
        }
        if !self.limiter.has_application_subjects() {
            return self.inner.call(request);
        }
        let (mut parts, body) = request.into_parts();
        let values = self.limiter.application_values(&parts);
        parts.extensions.insert(values);
        self.inner.call(Request::from_parts(parts, body))
    }
}

/// Answers a request whose client's address is unknown, and logs what to do.
fn without_peer<B>() -> Response<Body<B>> {
    // Log only once: a client must not be able to fill the log.
    static LOGGED: Once = Once::new();
    LOGGED.call_once(|| {
        tracing::error!(
            "a limit or a rule uses the client's address, and the request has none: with axum, \
             enable the feature `axum` of the crate tollgate and serve with \
             `app.into_make_service_with_connect_info::<SocketAddr>()`; with other servers, insert \
             `tollgate::tower::Peer` into the request's extensions or call \
             `RateLimitLayer::peer_from`"
        );
    });
    let body = "{\"title\":\"The server cannot see the client's address\",\"status\":500,\
                \"detail\":\"The server's log says what to do.\"}";
    answer(StatusCode::INTERNAL_SERVER_ERROR, crate::problem::CONTENT_TYPE, body.to_owned())
}

impl<Inner: Clone, S> Clone for RateLimitService<Inner, S> {
    fn clone(&self) -> Self {
        let (inner, limiter) = (self.inner.clone(), self.limiter.clone());
        Self { inner, limiter, peer_from: self.peer_from }
    }
}

impl<Inner, S> fmt::Debug for RateLimitService<Inner, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService").finish_non_exhaustive()
    }
}
