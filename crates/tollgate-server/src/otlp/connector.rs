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
use crate::tls::{TlsError, certificates};

/// How long a collector has for its answer.
pub const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// How a collector is reached. Over TLS its certificate is always verified.
#[derive(Clone, Debug)]
pub struct Connector(HttpsConnector<HttpConnector>);

impl Connector {
    /// The way to `endpoint`: over TLS if it begins with `https`. Then its certificate has to be signed by one of
    /// `authorities`, a PEM file, or by one that the machine believes where no file is named. Reads files: not for
    /// an async thread.
    ///
    /// # Errors
    /// [`ConnectorError`] where nobody's certificate could be verified.
    pub fn to(endpoint: &Endpoint, authorities: Option<&Path>) -> Result<Self, ConnectorError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(EXPORT_TIMEOUT));
        // Of a plain one nothing is verified, and no file is asked for.
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
    // Named, not the process's default: another library's choice must not change this one's.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectorError::Unusable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn roots(authorities: Option<&Path>) -> Result<RootCertStore, ConnectorError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = authorities else {
        // One unreadable certificate among the machine's many is not a reason to believe none of them.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if roots.is_empty() { Err(ConnectorError::Nobody) } else { Ok(roots) };
    };
    for authority in certificates(path).map_err(ConnectorError::File)? {
        roots.add(authority).map_err(|error| ConnectorError::File(TlsError::new(path, error)))?;
    }
    Ok(roots)
}

/// Why a collector's certificate cannot be verified.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectorError {
    /// The file of authorities is of no use.
    File(TlsError),
    /// The machine believes no authority.
    Nobody,
    /// No certificate can bear this name.
    Name(String),
    /// TLS cannot be set up.
    Unusable(String),
}

impl fmt::Display for ConnectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "the authorities of the collector: {error}"),
            Self::Nobody => f.write_str(
                "this machine believes no authority: name a file of authorities for the collector",
            ),
            Self::Name(host) => {
                write!(f, "no certificate can be for the collector's host {host:?}")
            }
            Self::Unusable(problem) => {
                write!(f, "TLS to the collector cannot be set up: {problem}")
            }
        }
    }
}

impl Error for ConnectorError {}
