//! Certificates, keys and authorities in PEM files.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use tokio_rustls::rustls::{
    Error, InconsistentKeys, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
};

const CERTIFICATES: &str = "the file should contain certificates in PEM form";
const KEY: &str = "the file should contain an unencrypted private key in PEM form";

/// Reads the certificates of a PEM file, at least one.
///
/// # Errors
/// [`TlsError`] with the file and its problem.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    let certificates = read().map_err(|error| TlsError::pem(path, &error, CERTIFICATES))?;
    if certificates.is_empty() {
        return Err(TlsError::new(path, "it contains no certificate", CERTIFICATES));
    }
    Ok(certificates)
}

/// Reads the authorities of a PEM file, or returns the authorities that the system trusts if there
/// is no file.
///
/// # Errors
/// [`TlsError`] with the file and its problem.
pub fn trust_anchors(path: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = path else {
        // If some of the system's certificates are unreadable, the others are still trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return match roots.is_empty() {
            true => Err(TlsError::NoAuthorities),
            false => Ok(roots),
        };
    };
    for authority in certificates(path)? {
        roots.add(authority).map_err(|error| TlsError::new(path, error, CERTIFICATES))?;
    }
    Ok(roots)
}

pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::new(path, "it contains no private key", KEY),
        error => TlsError::pem(path, &error, KEY),
    })
}

/// Returns the error for a certificate and a key that rustls does not accept together.
pub(super) fn mismatch(certificate: &Path, key: &Path, error: &Error) -> TlsError {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let problem = format_args!("it is not the key of {}", certificate.display());
            TlsError::new(key, problem, "use the key for which the certificate was issued")
        }
        error => TlsError::new(certificate, error, "use a certificate for a TLS server or client"),
    }
}

/// A file of certificates or keys that cannot be used. Contains no part of a private key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or does not have the expected content.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The problem with the file.
        problem: String,
        /// What the operator should do.
        remedy: &'static str,
    },
    /// The system trusts no authority, and no file names any.
    NoAuthorities,
}

impl TlsError {
    /// Creates the error for a file.
    pub fn new(path: &Path, problem: impl fmt::Display, remedy: &'static str) -> Self {
        Self::File { path: path.to_owned(), problem: problem.to_string(), remedy }
    }

    fn pem(path: &Path, error: &pem::Error, remedy: &'static str) -> Self {
        match error {
            pem::Error::Io(error) => {
                Self::new(path, error, "name a file that this process can read")
            }
            error => Self::new(path, error, remedy),
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, problem, remedy } => {
                write!(f, "{}: {problem}; {remedy}", path.display())
            }
            Self::NoAuthorities => {
                f.write_str("this system trusts no authority; name a file of authorities")
            }
        }
    }
}

impl std::error::Error for TlsError {}
