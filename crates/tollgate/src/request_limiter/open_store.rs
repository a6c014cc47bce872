//! Stores that a builder opens.

use std::convert::Infallible;
use std::error::Error;

use tollgate_core::{Policy, Store};

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

    /// Whether several processes share the store. For a shared store, credentials need a
    /// [key](crate::RequestLimiterBuilder::hash_key) that is the same on every node.
    const IS_SHARED: bool = false;

    /// Opens the store for `policy`. Credentials are hashed under `key`.
    ///
    /// # Errors
    /// An error that names the setting that cannot be used, and what to do.
    fn open(self, policy: &Policy, key: &HashKey) -> Result<Self::Store, Self::Error>;
}

impl<S: Store + 'static> OpenStore for S {
    type Store = S;
    type Error = Infallible;

    fn open(self, _policy: &Policy, _key: &HashKey) -> Result<S, Infallible> {
        Ok(self)
    }
}
