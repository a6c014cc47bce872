//! An authority, certificates that it signed, and clients that trust it.

use std::{path::PathBuf, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};
use tollgate_proxy::{ClientAuthorities, ServerTls};

use crate::setup::within;

/// A folder with `ca.pem`, and with the certificates that its authority signed.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut params = CertificateParams::new([]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let this = Self { folder, issuer };
        std::fs::write(this.file("ca.pem"), this.issuer.pem()).expect("a file");
        this
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes `NAME.pem` and `NAME.key` for the common name `name` and the host `host`.
    pub(crate) fn issue(&self, name: &str, host: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([host.to_owned()]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let files = (self.file(&format!("{name}.pem")), self.file(&format!("{name}.key")));
        std::fs::write(&files.0, certificate.pem()).expect("a file");
        std::fs::write(&files.1, key.serialize_pem()).expect("a file");
        files
    }

    /// Returns the settings of a server for `localhost`.
    pub(crate) fn server(&self, clients: ClientAuthorities, protocols: &[&str]) -> ServerTls {
        let (certificate, key) = self.issue("server", "localhost");
        ServerTls::read(&certificate, &key, clients, protocols).expect("a certificate")
    }

    /// Returns a client with the certificate of `name`, if it has one.
    pub(crate) fn connector(&self, name: Option<&str>, protocols: &[&str]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(self.file("ca.pem")).expect("PEM");
        roots.add(authority).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match name {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let (certificate, key) = self.issue(name, name);
                let chain = vec![CertificateDer::from_pem_file(certificate).expect("PEM")];
                let key = PrivateKeyDer::from_pem_file(key).expect("PEM");
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        };
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

/// Opens a TLS connection to `address`.
pub(crate) async fn connect(
    connector: &TlsConnector,
    address: std::net::SocketAddr,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    within(connector.connect("localhost".try_into().expect("a name"), stream)).await
}

/// Sends `request` on a connection of its own, and reads to the end. Errors end the response.
pub(crate) async fn exchange(
    connector: &TlsConnector,
    address: std::net::SocketAddr,
    request: &str,
) -> String {
    let Ok(mut stream) = connect(connector, address).await else { return String::new() };
    let mut read = Vec::new();
    if within(stream.write_all(request.as_bytes())).await.is_ok() {
        // The proxy may close without a response.
        let _ = within(stream.read_to_end(&mut read)).await;
    }
    String::from_utf8_lossy(&read).into_owned()
}
