//! TLS to an upstream: the authorities that may sign its certificate, and a certificate for the
//! client.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, crypto::ring},
};

use super::{
    files::{TlsError, certificates, mismatch, private_key, trust_anchors},
    reload::{CertificateStatus, Read, Reloadable, expiry},
};

/// The files of [`ClientTls`], all in PEM form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// The authorities that may sign the server's certificate. `None` means the authorities that
    /// the system trusts.
    pub authorities: Option<PathBuf>,
    /// The file of the client's certificate chain, and the file of its private key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// The settings of TLS connections to servers: the trusted authorities and the client's
/// certificate, which can be reloaded. The certificate and the name of a server are always
/// verified.
#[derive(Clone)]
pub struct ClientTls {
    files: Arc<ClientTlsFiles>,
    config: Reloadable<ClientConfig>,
}

impl ClientTls {
    /// Reads the files. Do not call this function from an async thread.
    ///
    /// # Errors
    /// [`TlsError`] with the file that cannot be used.
    pub fn read(files: ClientTlsFiles) -> Result<Self, TlsError> {
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

    /// Returns the files that the settings were read from.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let client = self.files.client.iter().flat_map(|(chain, key)| [&**chain, &**key]);
        self.files.authorities.as_deref().into_iter().chain(client)
    }

    /// Returns the expiry of the client's certificate, and the counts of reloads.
    #[must_use]
    pub fn status(&self) -> CertificateStatus {
        self.config.status()
    }

    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(self.config.load())
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ClientTlsFiles {
    fn config(&self) -> Result<Read<ClientConfig>, TlsError> {
        let roots = trust_anchors(self.authorities.as_deref())?;
        // The provider is named explicitly, because another library's choice of the process-wide
        // default must not change the provider of these connections.
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            // This cannot fail, because ring implements the default versions.
            .map_err(|_| TlsError::NoAuthorities)?
            .with_root_certificates(roots);
        let (mut config, expires_at) = match &self.client {
            None => (builder.with_no_client_auth(), None),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let expires_at = expiry(&chain);
                let config = builder
                    .with_client_auth_cert(chain, private_key(key)?)
                    .map_err(|error| mismatch(certificate, key, &error))?;
                (config, expires_at)
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Read { config, expires_at })
    }
}
