//! The certificates of `tollgate proxy`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tollgate_proxy::{ClientAuthorities, ClientTls, ClientTlsFiles, ServerTls};

use crate::failure::Failure;

/// The protocols that clients may use, the preferred protocol first.
const PROTOCOLS: [&str; 2] = ["h2", "http/1.1"];

#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "TLS")]
pub(super) struct Flags {
    /// Serve clients over TLS: the PEM file of the certificate chain
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Request certificates of clients: the PEM file of the authorities that sign them
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Whether clients without a certificate are served
    #[arg(long, value_name = "WORD", value_enum, default_value_t)]
    tls_client_auth: ClientAuth,
    /// The PEM file of the authorities of https upstreams; by default those that the system trusts
    #[arg(long, value_name = "FILE")]
    upstream_ca: Option<PathBuf>,
    /// The PEM file of the certificate chain that is presented to https upstreams
    #[arg(long, value_name = "FILE", requires = "upstream_key")]
    upstream_cert: Option<PathBuf>,
    /// The PEM file of the private key of --upstream-cert
    #[arg(long, value_name = "FILE", requires = "upstream_cert")]
    upstream_key: Option<PathBuf>,
}

/// Whether a client has to present a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ClientAuth {
    /// Only clients with a certificate are served
    #[default]
    Required,
    /// Clients may connect without a certificate
    Optional,
}

impl Flags {
    /// Reads the certificates for connections to upstreams. `is_used` is true if an upstream uses
    /// TLS. If no upstream uses TLS, returns `None`, and the flags of certificates are an error.
    pub(super) fn client(&self, is_used: bool) -> Result<Option<ClientTls>, Failure> {
        let client = self.upstream_cert.clone().zip(self.upstream_key.clone());
        let files = ClientTlsFiles { authorities: self.upstream_ca.clone(), client };
        match (is_used, files == ClientTlsFiles::default()) {
            (false, true) => Ok(None),
            (false, false) => Err(
                "--upstream-ca and --upstream-cert need an https upstream: no URL of --upstream \
                     or --route begins with https"
                    .into(),
            ),
            (true, _) => {
                let tls = ClientTls::read(files);
                Ok(Some(tls.map_err(|error| format!("cannot use TLS to the upstream: {error}"))?))
            }
        }
    }

    /// Reads the certificate that the proxy presents to clients. Returns `None` if the flags name
    /// no certificate.
    pub(super) fn server(&self) -> Result<Option<ServerTls>, Failure> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let clients = match (self.tls_client_ca.clone(), self.tls_client_auth) {
            (None, _) => ClientAuthorities::None,
            (Some(path), ClientAuth::Required) => ClientAuthorities::Required(path),
            (Some(path), ClientAuth::Optional) => ClientAuthorities::Optional(path),
        };
        let tls = ServerTls::read(certificate, key, clients, &PROTOCOLS);
        Ok(Some(tls.map_err(|error| format!("cannot serve clients over TLS: {error}"))?))
    }
}
