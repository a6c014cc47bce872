//! Connections that are encrypted, and on which both sides prove who they are.

mod kit;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use kit::Server;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tollgate_conformance::{PlainHash, check};
use tollgate_redis::{Choice, Endpoint, Keys, LinkLimits, RedisShard, ShardSettings, Tls};

const PATIENCE: Duration = Duration::from_secs(60);

/// An authority, a server's certificate for 127.0.0.1 and a client's, as PEM files.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(TempDir::new().unwrap());
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // With one name for all, OpenSSL takes each certificate for its own issuer's.
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

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tls(&self) -> Tls {
        Tls {
            authorities: Some(self.path("ca.pem")),
            client: Some((self.path("client.pem"), self.path("client.key"))),
            server_name: None,
        }
    }

    /// A server that also listens, on a second port, for clients with certificates.
    async fn serve(&self) -> (Server, u16) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = |path: PathBuf| path.display().to_string();
        let arguments = [
            ["--tls-port", &port.to_string()],
            ["--tls-ca-cert-file", &text(self.path("ca.pem"))],
            ["--tls-cert-file", &text(self.path("server.pem"))],
            ["--tls-key-file", &text(self.path("server.key"))],
        ];
        let arguments: Vec<_> = arguments.iter().flatten().copied().collect();
        (Server::start_with(&arguments).await, port)
    }
}

fn shard(port: u16, tls: Tls) -> RedisShard {
    let endpoint: Endpoint = format!("rediss://127.0.0.1:{port}").parse().unwrap();
    let mut settings = ShardSettings::new(endpoint.with_tls(tls).unwrap());
    settings.link = LinkLimits { connect: PATIENCE, proof: PATIENCE, ..LinkLimits::default() };
    RedisShard::open(&settings, Keys::new(PlainHash), Choice::Best).with_deadline(PATIENCE)
}

/// Why no connection comes about.
async fn refusal(store: &RedisShard) -> String {
    loop {
        if let Some(error) = &store.status()[0].last_error {
            return error.to_string();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_suite_passes_over_tls_with_certificates_of_both_sides() {
    let files = Files::new();
    let (_server, port) = files.serve().await;
    let store = shard(port, files.tls());
    store.ready(PATIENCE).await.unwrap();
    check(&store, "tls").await;
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let (files, others) = (Files::new(), Files::new());
    let (_server, port) = files.serve().await;
    let tls = Tls { authorities: Some(others.path("ca.pem")), ..files.tls() };
    let error = refusal(&shard(port, tls)).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_server_with_another_name_is_not_trusted() {
    let files = Files::new();
    let (_server, port) = files.serve().await;
    let tls = Tls { server_name: Some("redis.example".into()), ..files.tls() };
    let error = refusal(&shard(port, tls)).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_turned_away_by_the_server() {
    let files = Files::new();
    let (_server, port) = files.serve().await;
    let store = shard(port, Tls { client: None, ..files.tls() });
    refusal(&store).await;
    assert_eq!(store.status()[0].address, None);
}

#[tokio::test]
async fn a_file_that_is_no_certificate_is_named() {
    let files = Files::new();
    fs::write(files.path("junk.pem"), "canary").unwrap();
    let (_server, port) = files.serve().await;
    let tls = Tls { authorities: Some(files.path("junk.pem")), ..files.tls() };
    let error = refusal(&shard(port, tls)).await;
    assert!(error.contains("junk.pem") && !error.contains("canary"), "{error}");
}
