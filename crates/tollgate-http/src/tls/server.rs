//! The certificate that a listener presents, and the authorities that may sign its clients'
//! certificates.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, server::WebPkiClientVerifier},
};

use super::{
    files::{TlsError, certificates, mismatch, private_key, trust_anchors},
    reload::{CertificateStatus, Read, Reloadable, expiry},
};

/// The certificates of a listener, which can be reloaded while the listener is open.
#[derive(Clone)]
pub struct ServerTls {
    files: Arc<Files>,
    config: Reloadable<ServerConfig>,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    clients: ClientAuthorities,
    protocols: Vec<Vec<u8>>,
}

/// Whether clients have to present a certificate, and the PEM file of the authorities that may have
/// signed the certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientAuthorities {
    /// No certificate is requested.
    #[default]
    None,
    /// A client may connect without a certificate. If the client presents a certificate, it is
    /// verified.
    Optional(PathBuf),
    /// A client without a certificate is not served.
    Required(PathBuf),
}

impl ClientAuthorities {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::Optional(path) | Self::Required(path) => Some(path),
        }
    }
}

impl ServerTls {
    /// Reads a certificate and its key from PEM files, for listeners that offer `protocols` (ALPN,
    /// in order of preference). This function reads files, so do not call it from an async thread.
    ///
    /// # Errors
    /// [`TlsError`] with the file that cannot be used.
    pub fn read(
        certificate: &Path,
        key: &Path,
        clients: ClientAuthorities,
        protocols: &[&str],
    ) -> Result<Self, TlsError> {
        let files = Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            clients,
            protocols: protocols.iter().map(|name| name.as_bytes().to_vec()).collect(),
        };
        let config = Reloadable::new(files.config()?);
        Ok(Self { files: Arc::new(files), config })
    }

    /// Reads the files again, and uses their content for new connections. Open connections are not
    /// affected. Do not call this function from an async thread.
    ///
    /// # Errors
    /// [`TlsError`] with the file that cannot be used. The previous certificates then stay in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.config.replace(self.files.config())
    }

    /// Returns the files that the certificate was read from.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let Files { certificate, key, clients, .. } = &*self.files;
        [&**certificate, &**key].into_iter().chain(clients.path())
    }

    /// Returns the expiry of the certificate, and the counts of reloads.
    #[must_use]
    pub fn status(&self) -> CertificateStatus {
        self.config.status()
    }

    /// Returns whether clients have to present a certificate.
    #[must_use]
    pub fn requires_client_certificates(&self) -> bool {
        self.files.requires_certificates()
    }

    #[cfg(test)]
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.load()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load())
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Files {
    fn config(&self) -> Result<Read<ServerConfig>, TlsError> {
        const CERTIFICATE: &str = "use another certificate";
        let chain = certificates(&self.certificate)?;
        let key = private_key(&self.key)?;
        let expires_at = expiry(&chain);
        // The provider is named explicitly, because another library's choice of the process-wide
        // default must not change the provider of this listener.
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new(&self.certificate, error, CERTIFICATE))?;
        let builder = match self.clients.path() {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(trust_anchors(Some(path))?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = match self.requires_certificates() {
                    true => verifier,
                    false => verifier.allow_unauthenticated(),
                };
                let verifier = verifier
                    .build()
                    .map_err(|error| TlsError::new(path, error, "use another authority"))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| mismatch(&self.certificate, &self.key, &error))?;
        config.alpn_protocols.clone_from(&self.protocols);
        Ok(Read { config, expires_at })
    }

    fn requires_certificates(&self) -> bool {
        matches!(self.clients, ClientAuthorities::Required(_))
    }
}
