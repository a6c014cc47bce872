//! TLS to a server: trusted authorities and client certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The certificates for a TLS connection. The server's certificate is always verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The PEM file of the trusted authorities. `None` selects the system's authorities.
    pub authorities: Option<PathBuf>,
    /// The PEM files of the client's certificate chain and private key. `None` if the client
    /// presents no certificate.
    pub client: Option<(PathBuf, PathBuf)>,
    /// The name in the server's certificate. `None` if the certificate contains the host name.
    pub server_name: Option<String>,
}

impl Tls {
    /// Reads the certificate files. The reads block the thread, so do not call this function on an
    /// async thread.
    pub(crate) fn connector(&self) -> Result<TlsConnector, TlsError> {
        let roots = match &self.authorities {
            Some(path) => own_roots(path)?,
            None => system_roots()?,
        };
        // The provider is set explicitly, because another library may change the process's default
        // provider.
        let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Unusable { problem: error.to_string() })?
            .with_root_certificates(roots);
        let config = match &self.client {
            None => versions.with_no_client_auth(),
            Some((chain, key)) => versions
                .with_client_auth_cert(certificates(chain)?, private_key(key)?)
                .map_err(|error| TlsError::Unusable { problem: error.to_string() })?,
        };
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

fn own_roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::file(path, error))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    // If some of the system's certificates cannot be read, the other certificates are still
    // trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(TlsError::Unusable {
            problem: "the system trusts no authority; name a file of authorities".into(),
        });
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(path)?;
    let found = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::file(path, error))?;
    if found.is_empty() {
        return Err(TlsError::file(path, "it contains no certificate in PEM form"));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| TlsError::file(path, error))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| TlsError::file(path, error))
}

/// The reason why certificates could not be used. Contains no part of a private key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read or does not have the expected content.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The reason why the file cannot be used.
        problem: String,
    },
    /// The certificates, the key and the settings do not fit together.
    Unusable {
        /// The reason why the certificates, the key and the settings do not fit together.
        problem: String,
    },
}

impl TlsError {
    fn file(path: &Path, problem: impl fmt::Display) -> Self {
        Self::File { path: path.to_owned(), problem: problem.to_string() }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, problem } => {
                write!(f, "{} cannot be used for TLS: {problem}", path.display())
            }
            Self::Unusable { problem } => write!(f, "TLS cannot be set up: {problem}"),
        }
    }
}

impl std::error::Error for TlsError {}
