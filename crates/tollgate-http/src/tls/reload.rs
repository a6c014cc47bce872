//! Settings that are read from files and replaced as a whole.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use parking_lot::RwLock;
use tokio_rustls::rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::files::TlsError;

/// The stored time of expiry if there is no certificate that expires.
const NEVER: i64 = i64::MAX;

/// TLS settings with the counters of their reloads. Clones share their state.
#[derive(Debug)]
pub(super) struct Reloadable<C>(Arc<Shared<C>>);

#[derive(Debug)]
struct Shared<C> {
    config: RwLock<Arc<C>>,
    expires_at: AtomicI64,
    reloads: AtomicU64,
    failures: AtomicU64,
}

/// The expiry and the reloads of the certificates of a listener or an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    /// The time at which the listener's or the client's own certificate expires, in seconds since
    /// 1970-01-01 UTC. `None` without a certificate.
    pub expires_at: Option<i64>,
    /// The number of times that the files were read again successfully.
    pub reloads: u64,
    /// The number of times that reading the files again failed, so the previous certificates stayed
    /// in use.
    pub failed_reloads: u64,
}

impl<C> Clone for Reloadable<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// New settings that were read from files, and the time at which their certificate expires.
pub(super) struct Read<C> {
    pub(super) config: C,
    pub(super) expires_at: Option<i64>,
}

impl<C> Reloadable<C> {
    pub(super) fn new(read: Read<C>) -> Self {
        Self(Arc::new(Shared {
            config: RwLock::new(Arc::new(read.config)),
            expires_at: AtomicI64::new(read.expires_at.unwrap_or(NEVER)),
            reloads: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }))
    }

    /// Returns the current settings.
    pub(super) fn load(&self) -> Arc<C> {
        Arc::clone(&self.0.config.read())
    }

    /// Replaces the current settings by the settings in `read`. If `read` is an error, counts the
    /// failure, returns the error and keeps the previous settings.
    pub(super) fn replace(&self, read: Result<Read<C>, TlsError>) -> Result<(), TlsError> {
        match read {
            Ok(Read { config, expires_at }) => {
                *self.0.config.write() = Arc::new(config);
                self.0.expires_at.store(expires_at.unwrap_or(NEVER), Ordering::Relaxed);
                self.0.reloads.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.0.failures.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    pub(super) fn status(&self) -> CertificateStatus {
        let expires_at = self.0.expires_at.load(Ordering::Relaxed);
        CertificateStatus {
            expires_at: (expires_at != NEVER).then_some(expires_at),
            reloads: self.0.reloads.load(Ordering::Relaxed),
            failed_reloads: self.0.failures.load(Ordering::Relaxed),
        }
    }
}

/// Returns the expiry of the first certificate in `chain`, in seconds since 1970-01-01 UTC. Returns
/// `None` if the chain is empty or the certificate cannot be parsed.
pub(super) fn expiry(chain: &[CertificateDer<'_>]) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(chain.first()?).ok()?;
    Some(certificate.validity().not_after.timestamp())
}
