//! The limiter of HTTP requests, for [`RateLimitLayer`](crate::RateLimitLayer) and for servers
//! without tower.

mod address;
mod builder;
mod compile;
mod decision;
mod error;
mod open_store;
mod rule;
mod subjects;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use http::request::Parts;
use tollgate_core::Store;

pub use builder::RequestLimiterBuilder;
pub use decision::RequestDecision;
pub use error::BuildError;
pub use open_store::OpenStore;
pub use rule::Rule;

use subjects::ApplicationSubject;

use crate::limiter::{DecisionRequest, Limiter, Reservation};
use crate::revision::Revision;
use crate::tower::{ApplicationValues, Fields, attributes_of};

/// Limits HTTP requests by several limits, subjects and rules. Cloning is cheap and shares the
/// counters.
///
/// Put the limiter in front of a service with [`RateLimitLayer::new`](crate::RateLimitLayer::new),
/// or call [`check`](Self::check).
///
/// ```
/// use tollgate::{Quota, RateLimitLayer, RateLimiter};
///
/// let limiter = RateLimiter::builder()
///     .limit("per-address", Quota::per_second(10).per("ip"))
///     .build()?;
/// let layer = RateLimitLayer::new(limiter);
/// # let _ = layer;
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub struct RequestLimiter<S = crate::store::Memory> {
    limiter: Arc<Limiter<S>>,
    application: Arc<[ApplicationSubject]>,
    /// The policy that was last examined, and whether it uses the client's address.
    uses_address: Arc<ArcSwap<(Arc<Revision>, bool)>>,
}

impl<S: Store + 'static> RequestLimiter<S> {
    pub(crate) fn new(limiter: Limiter<S>, application: Vec<ApplicationSubject>) -> Self {
        let policy = limiter.policy();
        let is_used = address::is_used(&policy);
        let uses_address = Arc::new(ArcSwap::from_pointee((policy, is_used)));
        Self { limiter: Arc::new(limiter), application: application.into(), uses_address }
    }

    /// Checks a request and charges every limit that applies, or none. `peer` is the address of the
    /// connection.
    ///
    /// Call [`RequestDecision::finish`] with the status of the response, and keep the decision
    /// until the response has ended: dropping the decision releases the request's permits of
    /// concurrency limits.
    ///
    /// This function only checks the limits. [`RateLimitLayer`](crate::RateLimitLayer) also sheds
    /// load, lets requests wait for a permit, and refuses requests that services can read in
    /// different ways, if the policy file says so.
    ///
    /// ```
    /// use http::Request;
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::builder()
    ///     .limit("per-address", Quota::per_minute(2).per("ip"))
    ///     .build()?;
    /// let (parts, _body) = Request::get("/").body(())?.into_parts();
    /// let peer = "192.0.2.7:4711".parse()?;
    /// let mut decision = limiter.check(&parts, Some(peer)).await;
    /// assert!(decision.is_admitted());
    /// assert_eq!(decision.remaining(), Some(1));
    /// decision.finish(http::StatusCode::OK); // the status of the response
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn check(&self, parts: &Parts, peer: Option<SocketAddr>) -> RequestDecision<S> {
        // The caller may finish or drop the decision outside of the runtime.
        self.limiter.remember_runtime();
        let deciding = {
            let values = self.application_values(parts);
            let fields = Fields::of_parts(parts, &values);
            let peer = peer.map(|peer| peer.ip());
            let attributes = attributes_of(&parts.method, &parts.uri, &fields, peer);
            let (now, policy) = (self.limiter.now(), self.limiter.policy());
            let plan = self.limiter.plan_at(now, &policy, &attributes);
            let request = DecisionRequest::new(now, &policy, plan);
            let reservation = Reservation::Metered;
            self.limiter.decide_or_release(DecisionRequest { reservation, ..request })
        };
        RequestDecision::new(&self.limiter, deciding.await)
    }

    /// Reads the subjects that the application defined by functions from the request, and returns
    /// their values.
    pub(crate) fn application_values(&self, parts: &Parts) -> ApplicationValues {
        let values = self.application.iter().filter_map(|subject| {
            let value = (subject.read)(parts)?;
            Some((Arc::clone(&subject.name), value))
        });
        ApplicationValues(values.collect())
    }

    /// Returns whether the application defined a subject by a function.
    pub(crate) fn has_application_subjects(&self) -> bool {
        !self.application.is_empty()
    }

    /// Returns whether a limit or a rule uses the client's address, so every request needs the
    /// address.
    pub(crate) fn needs_peer(&self) -> bool {
        let (policy, examined) = (self.limiter.borrow_policy(), self.uses_address.load());
        if Arc::ptr_eq(&policy, &examined.0) {
            return examined.1;
        }
        // The policy was replaced.
        let is_used = address::is_used(&policy);
        self.uses_address.store(Arc::new((Guard::into_inner(policy), is_used)));
        is_used
    }

    /// Returns the [limiter](Limiter) of the lower level, whose interface is not stable.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder().limit("all", Quota::per_second(10)).build()?;
    /// assert_eq!(limiter.limiter().policy().limits().len(), 1);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn limiter(&self) -> &Arc<Limiter<S>> {
        &self.limiter
    }
}

/// Converts a [limiter](Limiter) of the lower level, for example a limiter that a policy file
/// describes.
impl<S: Store + 'static> From<Limiter<S>> for RequestLimiter<S> {
    fn from(limiter: Limiter<S>) -> Self {
        Self::new(limiter, Vec::new())
    }
}

impl<S> Clone for RequestLimiter<S> {
    fn clone(&self) -> Self {
        let (limiter, application) = (Arc::clone(&self.limiter), Arc::clone(&self.application));
        Self { limiter, application, uses_address: Arc::clone(&self.uses_address) }
    }
}

impl<S> fmt::Debug for RequestLimiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLimiter")
            .field("application", &self.application)
            .finish_non_exhaustive()
    }
}
