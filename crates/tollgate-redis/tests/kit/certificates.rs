//! Certificates of a test's own certificate authority.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

/// The certificates of a test: an authority's `ca.pem`, a `server.pem` for 127.0.0.1, and a
/// `client.pem`. The last two each have a `.key` file.
pub struct Certificates(TempDir);

impl Certificates {
    /// Creates new certificates.
    pub fn new() -> Self {
        let files = Self(TempDir::new().unwrap());
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // If all certificates had the same name, OpenSSL would take each certificate for its own
        // issuer.
        params.distinguished_name.push(DnType::CommonName, "authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(files.path("ca.pem"), authority.pem()).unwrap();
        for (name, subject) in [("server", "127.0.0.1"), ("client", "tollgate")] {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new([subject.to_owned()]).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            let certificate = params.signed_by(&key, &authority).unwrap();
            fs::write(files.path(&format!("{name}.pem")), certificate.pem()).unwrap();
            fs::write(files.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        files
    }

    /// Returns the path of the file `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the arguments with which a server also listens on `port` for clients with
    /// certificates.
    pub fn arguments(&self, port: u16) -> Vec<String> {
        let path = |name| self.path(name).display().to_string();
        [
            ["--tls-port".to_owned(), port.to_string()],
            ["--tls-ca-cert-file".to_owned(), path("ca.pem")],
            ["--tls-cert-file".to_owned(), path("server.pem")],
            ["--tls-key-file".to_owned(), path("server.key")],
        ]
        .concat()
    }
}
