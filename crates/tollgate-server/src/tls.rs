//! The certificate that a listener presents, and the authorities of its clients' certificates.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::{fmt, io};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The certificates of a listener. They can be reloaded while it is open.
#[derive(Clone)]
pub struct ServerTls {
    files: Arc<Files>,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
    protocols: Vec<Vec<u8>>,
}

impl ServerTls {
    /// Reads a certificate and its key from PEM files, for listeners that offer `protocols` (ALPN,
    /// in order of preference). With `clients`, a PEM file of authorities, clients have to present
    /// a certificate that one of them signed. Reads files, so do not call it from an async thread.
    ///
    /// # Errors
    /// [`TlsError`] with the file that cannot be used.
    pub fn read(
        certificate: &Path,
        key: &Path,
        clients: Option<&Path>,
        protocols: &[&str],
    ) -> Result<Self, TlsError> {
        let files = Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            clients: clients.map(Path::to_owned),
            protocols: protocols.iter().map(|name| name.as_bytes().to_vec()).collect(),
        };
        let config = Arc::new(RwLock::new(Arc::new(files.config()?)));
        Ok(Self { files: Arc::new(files), config })
    }

    /// Reads the files again. Open connections are not affected. Do not call it from an async
    /// thread.
    ///
    /// # Errors
    /// [`TlsError`] with the file that cannot be used. The current certificates then stay in force.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = Arc::new(self.files.config()?);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Returns the files that it was read from.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let Files { certificate, key, clients, .. } = &*self.files;
        [certificate, key].into_iter().chain(clients).map(PathBuf::as_path)
    }

    /// Returns whether clients have to present a certificate.
    #[must_use]
    pub fn requires_client_certificates(&self) -> bool {
        self.files.clients.is_some()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&config))
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Files {
    fn config(&self) -> Result<ServerConfig, TlsError> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| TlsError::new(&self.key, error))?;
        // The provider is named explicitly: another library's choice of the process-wide default
        // must not change this one.
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new(&self.certificate, error))?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| TlsError::new(path, error))?;
                }
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = verifier.build().map_err(|error| TlsError::new(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::new(&self.certificate, error))?;
        config.alpn_protocols.clone_from(&self.protocols);
        Ok(config)
    }
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    let certificates = read().map_err(|error| TlsError::new(path, error))?;
    if certificates.is_empty() {
        return Err(TlsError::new(path, io::Error::other("it contains no certificate")));
    }
    Ok(certificates)
}

/// A file of certificates or keys that cannot be used.
#[derive(Debug)]
pub struct TlsError {
    path: PathBuf,
    problem: String,
}

impl TlsError {
    pub(crate) fn new(path: &Path, problem: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), problem: problem.to_string() }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; it should be in PEM form", self.path.display(), self.problem)
    }
}

impl std::error::Error for TlsError {}
