//! The limiter of a policy file.

use tollgate::observe::Degraded;
use tollgate::{CounterClock, Limiter, Revision};
use tollgate_policy::LoadedPolicy;

use crate::backend::Backend;
use crate::deny_cache_ttl::Refunds;
use crate::error::OpenError;
use crate::secret::hash_key;

/// Creates a limiter for `loaded`, with its policy, store and key, and a [`CounterClock`].
/// `refunds` names the sources of refunds: refusals that a refund can end are remembered only
/// briefly.
///
/// [`Degraded`] reports decisions that the store did not make, unless another observer replaces it.
/// The limiter decides at once; [`Backend::started`] waits until the store is connected. It has the
/// same requirements as [`Backend::open`].
///
/// # Errors
/// [`OpenError`] if the file's settings cannot be used. Its text says which ones and what to do.
pub fn limiter(loaded: LoadedPolicy, refunds: Refunds) -> Result<Limiter<Backend>, OpenError> {
    let key = hash_key(&loaded.settings.key)?;
    let backend = Backend::open(&loaded.settings, key.clone(), &loaded.policy, refunds)?;
    let clock = backend.clock(CounterClock::new());
    let degraded = Degraded::new(&loaded.policy);
    let limiter = Limiter::new(Revision::new(loaded.policy, loaded.version), backend);
    Ok(limiter.with_key(key).with_clock(clock).with_observer(degraded))
}
