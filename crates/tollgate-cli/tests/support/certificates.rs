//! An authority, certificates that it signed, and clients that trust it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A folder with `ca.pem`, and with the certificates that its authority signed.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let this = Self { folder: TempDir::new().unwrap(), issuer };
        this.write("ca.pem", &this.issuer.pem());
        this
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path of a file as a flag's value.
    pub(crate) fn flag(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Writes `NAME.pem` and `NAME.key`, for the common name `name` and the host `host`.
    pub(crate) fn issue(&self, name: &str, host: &str) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    /// Returns a client with the certificate of `name`, if it has one.
    pub(crate) fn client(&self, name: Option<&str>) -> TlsClient {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path("ca.pem")).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        TlsClient(Arc::new(match name {
            None => builder.with_no_client_auth(),
            Some(name) => {
                self.issue(name, name);
                let file = |kind| self.path(&format!("{name}.{kind}"));
                let chain = vec![CertificateDer::from_pem_file(file("pem")).unwrap()];
                let key = PrivateKeyDer::from_pem_file(file("key")).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        }))
    }
}

/// A client over TLS.
pub(crate) struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    /// Sends bytes on a new connection. Returns the response of the server at `address`, and the
    /// server's certificate in DER form.
    pub(crate) fn send(&self, address: SocketAddr, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let name = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.0), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
        // A server that refuses the client closes before everything is written.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let chain = stream.conn.peer_certificates().unwrap_or_default();
        (answer, chain.first().map(|first| first.to_vec()).unwrap_or_default())
    }
}
