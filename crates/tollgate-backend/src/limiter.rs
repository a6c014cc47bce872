//! From a policy file to a limiter.

use tollgate::observe::Degraded;
use tollgate::{CounterClock, Limiter, Revision};
use tollgate_policy::LoadedPolicy;

use crate::backend::Backend;
use crate::deny_cache_ttl::Refunds;
use crate::error::OpenError;
use crate::secret::hash_key;

/// A limiter by `loaded`: its policy, over its store, under its key, by a [`CounterClock`].
/// `refunds` says who gives charges back: what may be given back is not refused from memory for long.
///
/// Decisions that the store did not make are told by [`Degraded`], unless another observer takes its
/// place. It decides at once; [`Backend::started`] waits until the store is connected. Needs what
/// [`Backend::open`] needs.
///
/// # Errors
/// [`OpenError`] says which of the file's settings cannot be used, and what to do.
pub fn limiter(loaded: LoadedPolicy, refunds: Refunds) -> Result<Limiter<Backend>, OpenError> {
    let key = hash_key(&loaded.settings.key)?;
    let backend = Backend::open(&loaded.settings, key.clone(), &loaded.policy, refunds)?;
    let clock = backend.clock(CounterClock::new());
    let degraded = Degraded::new(&loaded.policy);
    let limiter = Limiter::new(Revision::new(loaded.policy, loaded.version), backend);
    Ok(limiter.with_key(key).with_clock(clock).with_observer(degraded))
}
