//! Creates the limiter that a policy file describes.

use std::fmt;
use std::path::{Path, PathBuf};

use tollgate::observe::Degraded;
use tollgate::{CounterClock, Limiter, RequestLimiter, Revision};
use tollgate_policy::{LoadError, LoadedPolicy};

use crate::backend::Backend;
use crate::settings::{OpenError, Refunds, hash_key};

/// Creates a limiter for `loaded`, with its policy, store and key, and a [`CounterClock`].
/// `refunds` determines from which sources refunds can come. If a refund can end a refusal, the
/// deny cache keeps refusals only briefly.
///
/// [`Degraded`] reports decisions that the store did not make, unless another observer replaces
/// [`Degraded`]. The limiter decides at once. [`Backend::started`] waits until the store is
/// connected. This function needs the same runtime as [`Backend::open`].
///
/// # Errors
/// [`OpenError`] if the file's settings cannot be used. The error's text names the settings and the
/// remedy.
pub fn limiter(loaded: LoadedPolicy, refunds: Refunds) -> Result<Limiter<Backend>, OpenError> {
    let key = hash_key(&loaded.settings.key)?;
    let backend = Backend::open(&loaded.settings, key.clone(), &loaded.policy, refunds)?;
    let clock = backend.clock(CounterClock::new());
    let degraded = Degraded::new(&loaded.policy);
    let limiter = Limiter::new(Revision::new(loaded.policy, loaded.version), backend);
    Ok(limiter.with_key(key).with_clock(clock).with_observer(degraded))
}

/// Opens the limiter and the store that the policy file at `path` describes.
///
/// This function starts no task for the parts of a policy that change while the program runs. If
/// the program uses these parts, start their tasks with [`RequestLimiter::limiter`]:
///
/// - [`Limiter::watch_load`], for `shed.worker.loop_delay`;
/// - [`OverrideSync`](crate::OverrideSync), for overrides and kill switches;
/// - [`TenantSync`](crate::TenantSync), for the table of tenants;
/// - [`PolicyFile::watch`](crate::PolicyFile::watch), for reloads of the file. Load the policy by
///   [`tollgate_policy::load`], which also returns the settings that
///   [`PolicyFile::new`](crate::PolicyFile::new) needs, and create the limiter by [`limiter()`].
///
/// ```no_run
/// use tollgate::RateLimitLayer;
///
/// let layer = RateLimitLayer::new(tollgate_backend::from_file("limits.yaml")?);
/// # let _ = layer;
/// # Ok::<(), tollgate_backend::FromFileError>(())
/// ```
///
/// # Errors
/// [`FromFileError`] with every mistake in the file, with its line and column, or with the setting
/// of the store that cannot be used.
pub fn from_file(path: impl AsRef<Path>) -> Result<RequestLimiter<Backend>, FromFileError> {
    let path = path.as_ref();
    let loaded = tollgate_policy::load(path).map_err(FromFileError::Load)?;
    let open = |error| FromFileError::Open { path: path.to_owned(), error };
    Ok(limiter(loaded, Refunds::ByResponses).map_err(open)?.into())
}

/// The reason why no limiter could be created from a policy file.
#[derive(Debug)]
#[non_exhaustive]
pub enum FromFileError {
    /// The file cannot be read or has mistakes.
    Load(LoadError),
    /// The store that the policy file describes cannot be opened.
    Open {
        /// The path of the file.
        path: PathBuf,
        /// The error, which names the setting and the remedy.
        error: OpenError,
    },
}

impl fmt::Display for FromFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Open { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for FromFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Load(error) => Some(error),
            Self::Open { error, .. } => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = from_file("no-such-policy.yaml").unwrap_err();
        assert!(error.to_string().contains("no-such-policy.yaml"), "{error}");
    }
}
