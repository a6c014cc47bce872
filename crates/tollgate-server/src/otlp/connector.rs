//! Connections to a collector, plain or over TLS.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::endpoint::Endpoint;
use tollgate_http::{TlsError, trust_anchors};

/// The longest time for a collector to respond to a batch.
pub const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connector to a collector. Over TLS, the collector's certificate is always verified.
#[derive(Clone, Debug)]
pub struct Connector(HttpsConnector<HttpConnector>);

impl Connector {
    /// Creates a connector for `endpoint`, over TLS if its URL starts with `https`. `authorities`
    /// is a PEM file of the authorities that may have signed the collector's certificate. Without
    /// this file, the authorities that the system trusts are used. This function reads files, so do
    /// not call it from an async thread.
    ///
    /// # Errors
    /// [`ConnectorError`] if the connector could never verify the collector's certificate.
    pub fn to(endpoint: &Endpoint, authorities: Option<&Path>) -> Result<Self, ConnectorError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(EXPORT_TIMEOUT));
        // Without TLS no certificate is verified, so no file is read.
        let roots = if endpoint.is_https() {
            named(endpoint)?;
            roots(authorities)?
        } else {
            RootCertStore::empty()
        };
        Ok(Self(HttpsConnector::from((tcp, tls(roots)?))))
    }

    pub(super) fn into_inner(self) -> HttpsConnector<HttpConnector> {
        self.0
    }
}

fn named(endpoint: &Endpoint) -> Result<(), ConnectorError> {
    let name = ServerName::try_from(endpoint.host());
    name.map(|_| ()).map_err(|_| ConnectorError::Name(endpoint.host().to_owned()))
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, ConnectorError> {
    // The provider is named explicitly, because another library's choice of the process-wide
    // default must not change the provider of these connections.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectorError::Unusable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn roots(authorities: Option<&Path>) -> Result<RootCertStore, ConnectorError> {
    trust_anchors(authorities).map_err(|error| match error {
        TlsError::NoAuthorities => ConnectorError::NoAuthorities,
        error => ConnectorError::File(error),
    })
}

/// The reason why a collector's certificate cannot be verified.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectorError {
    /// The file of authorities cannot be used.
    File(TlsError),
    /// The system trusts no authority.
    NoAuthorities,
    /// No certificate can be issued for this host name.
    Name(String),
    /// TLS cannot be set up.
    Unusable(String),
}

impl fmt::Display for ConnectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "cannot read the authorities of the collector: {error}"),
            Self::NoAuthorities => f.write_str(
                "this system trusts no authority: configure a file of authorities for the collector",
            ),
            Self::Name(host) => {
                write!(f, "the collector's host {host:?} is not a valid name for a certificate")
            }
            Self::Unusable(problem) => {
                write!(f, "TLS to the collector cannot be set up: {problem}")
            }
        }
    }
}

impl Error for ConnectorError {}
