//! The builder of a request limiter.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use tollgate_core::policy::SubjectSource;

use super::RequestLimiter;
use super::compile::{Draft, compile};
use super::error::BuildError;
use super::open_store::OpenStore;
use super::rule::Rule;
use super::subjects::ApplicationSubject;
use crate::hash_key::HashKey;
use crate::limiter::Limiter;
use crate::observe::Degraded;
use crate::quota::SubjectQuota;
use crate::rate_limiter::RateLimiter;
use crate::store::Memory;

/// The mistake of a builder with a shared store and without a hash key. Each node would choose a
/// random key, so no two nodes would find each other's counters.
const NO_HASH_KEY: &str = "the store is shared, and nodes find each other's counters by the hash \
                           key: call `hash_key` with `HashKey::from_secret` and the same secret on \
                           every node";

/// Builds a [`RequestLimiter`]: limits, the subjects that they count, and rules.
///
/// The subjects `ip`, `host`, `method` and `route` exist without a definition. `ip` is the client's
/// address, or the `/64` network of an IPv6 address. Requests without a value of a subject share
/// one counter.
///
/// ```
/// use http::request::Parts;
/// use tollgate::{Precision, Quota, RateLimiter, Rule};
///
/// #[derive(Clone)]
/// struct UserId(u64);
///
/// let limiter = RateLimiter::builder()
///     .subject("user", |parts: &Parts| parts.extensions.get::<UserId>().map(|id| id.0.to_string()))
///     .limit("burst", Quota::per_second(10).burst(20).per("user"))
///     .limit("hourly", Quota::per_hour(1_000).sliding(Precision::minutes(1)).per(["user", "ip"]))
///     .rule(Rule::path("/search/**").limits(["burst"]).cost(5))
///     .build()?;
/// # let _ = limiter;
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct RequestLimiterBuilder<O = Memory> {
    draft: Draft,
    application: Vec<ApplicationSubject>,
    store: O,
    hash_key: Option<HashKey>,
}

impl RateLimiter {
    /// Starts a limiter of HTTP requests: several limits, subjects and rules.
    ///
    /// ```
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// let limiter = RateLimiter::builder()
    ///     .limit("per-address", Quota::per_second(10).per("ip"))
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn builder() -> RequestLimiterBuilder {
        RequestLimiterBuilder::new()
    }
}

impl RequestLimiterBuilder {
    pub(crate) fn new() -> Self {
        let (draft, application) = (Draft::default(), Vec::new());
        Self { draft, application, store: Memory::default(), hash_key: None }
    }
}

impl<O: OpenStore> RequestLimiterBuilder<O> {
    /// Defines a subject that `read` reads from the request: from its extensions, its header fields
    /// or its target.
    ///
    /// ```
    /// use http::request::Parts;
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// let limiter = RateLimiter::builder()
    ///     .subject("tenant", |parts: &Parts| {
    ///         parts.uri.path().split('/').nth(1).map(str::to_owned)
    ///     })
    ///     .limit("per-tenant", Quota::per_second(100).per("tenant"))
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn subject(
        mut self,
        name: &str,
        read: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.draft.define(name, SubjectSource::Application { name: name.into() });
        self.application.push(ApplicationSubject { name: name.into(), read: Arc::new(read) });
        self
    }

    /// Defines a subject that is a credential in a header field, such as `authorization` or
    /// `x-api-key`. Only its keyed hash is stored.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder()
    ///     .credential("api-key", "x-api-key")
    ///     .limit("per-key", Quota::per_second(10).per("api-key"))
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn credential(mut self, name: &str, header: &str) -> Self {
        let header = header.to_ascii_lowercase().into();
        self.draft.define(name, SubjectSource::Credential { header });
        self
    }

    /// Defines a subject that is the value of a header field. Clients choose such values freely.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder()
    ///     .header("client", "x-client-name")
    ///     .limit("per-client", Quota::per_second(10).per(["client", "ip"]))
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn header(mut self, name: &str, header: &str) -> Self {
        let header = header.to_ascii_lowercase().into();
        self.draft.define(name, SubjectSource::Header { header });
        self
    }

    /// Adds a limit with a name of 1 to 64 letters, digits, `_`, `-` and `.`.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder()
    ///     .limit("per-address", Quota::per_second(10).per("ip"))
    ///     .limit("everybody", Quota::per_second(1_000))
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn limit(mut self, name: &str, quota: impl Into<SubjectQuota>) -> Self {
        self.draft.limits.push((name.into(), quota.into()));
        self
    }

    /// Adds a rule. The first rule that matches a request decides.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter, Rule};
    /// let limiter = RateLimiter::builder()
    ///     .limit("burst", Quota::per_second(10).per("ip"))
    ///     .rule(Rule::path("/health").exempt())
    ///     .rule(Rule::path("/search/**").cost(5))
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn rule(mut self, rule: Rule) -> Self {
        self.draft.rules.push(rule);
        self
    }

    /// Trusts the proxies in `network`, such as `10.0.0.0/8`, to report the client's address in
    /// `X-Forwarded-For`. Without a trusted proxy, the header is ignored, because clients can write
    /// the header.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder()
    ///     .limit("per-address", Quota::per_second(10).per("ip"))
    ///     .trusted_proxy("10.0.0.0/8")
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn trusted_proxy(mut self, network: &str) -> Self {
        self.draft.trusted.push(network.into());
        self
    }

    /// Keeps the counters in `store` instead of memory.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter, store::Memory, store::memory::Bounds};
    /// let limiter = RateLimiter::builder()
    ///     .limit("per-address", Quota::per_second(10).per("ip"))
    ///     .store(Memory::new(Bounds::default()))
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn store<T: OpenStore>(self, store: T) -> RequestLimiterBuilder<T> {
        let Self { draft, application, hash_key, .. } = self;
        RequestLimiterBuilder { draft, application, store, hash_key }
    }

    /// Sets the key under which subjects are hashed. The default is random. A store that several
    /// nodes share needs the same key on every node, because the nodes find each other's counters
    /// by the hashes.
    ///
    /// ```
    /// # use tollgate::{HashKey, Quota, RateLimiter};
    /// let limiter = RateLimiter::builder()
    ///     .limit("per-address", Quota::per_second(10).per("ip"))
    ///     .hash_key(HashKey::from_secret(b"the same on every node, 32 bytes"))
    ///     .build()?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn hash_key(mut self, key: HashKey) -> Self {
        self.hash_key = Some(key);
        self
    }

    /// Builds the limiter.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let error = RateLimiter::builder().limit("burst", Quota::per_second(0)).build().unwrap_err();
    /// assert_eq!(error.to_string(), "limit `burst`: the quota must be at least 1");
    /// ```
    ///
    /// # Errors
    /// [`BuildError`] with every mistake: unknown names, invalid quotas, patterns that match no
    /// path, a shared store without a [`hash_key`](Self::hash_key), a store that cannot be opened.
    pub fn build(self) -> Result<RequestLimiter<O::Store>, BuildError> {
        let Self { draft, application, store, hash_key } = self;
        let mut mistakes = Vec::new();
        let policy = compile(&draft).map_err(|found| mistakes = found).ok();
        if O::IS_SHARED && hash_key.is_none() {
            mistakes.push(NO_HASH_KEY.to_owned());
        }
        let Some(policy) = policy.filter(|_| mistakes.is_empty()) else {
            return Err(BuildError::new(mistakes));
        };
        let key = hash_key.unwrap_or_else(HashKey::random);
        let store =
            store.open(&policy, &key).map_err(|error| BuildError::store(Arc::new(error)))?;
        let clock = O::clock(&store);
        // A store in memory always answers, and an observer would slow its decisions down.
        let degraded = O::IS_SHARED.then(|| Degraded::new(&policy));
        let mut limiter = Limiter::new(policy, store).with_key(key);
        if let Some(clock) = clock {
            limiter = limiter.with_clock(clock);
        }
        if let Some(degraded) = degraded {
            limiter = limiter.with_observer(degraded);
        }
        Ok(RequestLimiter::new(limiter, application))
    }
}

impl<O> fmt::Debug for RequestLimiterBuilder<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLimiterBuilder").field("draft", &self.draft).finish_non_exhaustive()
    }
}
