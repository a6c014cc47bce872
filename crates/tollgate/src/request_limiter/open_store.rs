//! Stores that a builder opens.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use tollgate_core::{Policy, Store};

use crate::clock::Clock;
use crate::hash_key::HashKey;

/// A store, or settings from which [`build`](crate::RequestLimiterBuilder::build) opens a store.
///
/// Every [`Store`] implements this trait. If opening a store needs the policy or the hash key, the
/// store's crate implements this trait for the store's settings.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::store::Memory;
/// use tollgate::{Quota, RateLimiter};
///
/// let shared = Arc::new(Memory::default());
/// let limiter = RateLimiter::builder().limit("all", Quota::per_second(10)).store(shared).build()?;
/// # let _ = limiter;
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub trait OpenStore {
    /// The type of the opened store.
    type Store: Store + 'static;
    /// The reason why a store cannot be opened.
    type Error: Error + Send + Sync + 'static;

    /// Whether several processes share the store. A shared store needs a [hash
    /// key](crate::RequestLimiterBuilder::hash_key) that is the same on every node; without a key,
    /// [`build`](crate::RequestLimiterBuilder::build) returns an error. Decisions that a shared
    /// store did not make are logged.
    const IS_SHARED: bool = false;

    /// Opens the store for `policy`. Subjects are hashed under `key`.
    ///
    /// # Errors
    /// An error that names the setting that cannot be used, and what to do.
    fn open(self, policy: &Policy, key: &HashKey) -> Result<Self::Store, Self::Error>;

    /// Returns the clock that decides, if servers of `store` have clocks of their own. Otherwise
    /// the machine's clock decides.
    ///
    /// Nodes whose clocks differ must not count in different windows, so such a clock corrects the
    /// machine's clock by the clock of a server.
    #[must_use]
    fn clock(_store: &Self::Store) -> Option<Arc<dyn Clock>> {
        None
    }
}

impl<S: Store + 'static> OpenStore for S {
    type Store = S;
    type Error = Infallible;

    fn open(self, _policy: &Policy, _key: &HashKey) -> Result<S, Infallible> {
        Ok(self)
    }
}
