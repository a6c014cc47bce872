//! Certificates in files: the settings that are read, and the errors for files that cannot be used.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::{ServerName, Stream};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// Writes a self-signed certificate and its key.
    fn certificate(&self, name: &str) -> (PathBuf, PathBuf) {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
        let certificate = self.write(&format!("{name}.pem"), &pair.cert.pem());
        (certificate, self.write(&format!("{name}.key"), &pair.signing_key.serialize_pem()))
    }
}

fn error(certificate: &Path, key: &Path, clients: ClientAuthorities) -> String {
    ServerTls::read(certificate, key, clients, &[]).expect_err("an unusable file").to_string()
}

#[test]
fn each_unusable_file_is_named_with_its_problem_and_the_remedy() {
    let folder = Folder::new();
    let ((certificate, key), (_, other)) = (folder.certificate("a"), folder.certificate("b"));
    let missing = folder.0.path().join("missing.pem");
    let (empty, text) = (folder.write("empty.pem", ""), folder.write("text.pem", "hello"));
    let none = || ClientAuthorities::None;
    for (path, message, problem, remedy) in [
        (&missing, error(&missing, &key, none()), "No such file", "this process can read"),
        (&empty, error(&empty, &key, none()), "no certificate", "certificates in PEM form"),
        (&key, error(&key, &key, none()), "no certificate", "certificates in PEM form"),
        (&text, error(&certificate, &text, none()), "no private key", "unencrypted private key"),
        (&other, error(&certificate, &other, none()), "a.pem", "certificate was issued"),
        (
            &empty,
            error(&certificate, &key, ClientAuthorities::Optional(empty.clone())),
            "no certificate",
            "certificates in PEM form",
        ),
    ] {
        assert!(message.starts_with(&*path.to_string_lossy()), "{message}");
        assert!(message.contains(problem) && message.contains(remedy), "{message}");
    }
}

#[test]
fn a_reload_that_fails_keeps_the_certificate_and_is_counted() {
    let folder = Folder::new();
    let (certificate, key) = folder.certificate("a");
    let tls = ServerTls::read(&certificate, &key, ClientAuthorities::None, &[]).expect("a pair");
    let before = tls.status();
    assert!(before.expires_at.is_some_and(|at| at > 1_700_000_000), "{before:?}");
    folder.certificate("a");
    tls.reload().expect("another pair");
    let config = tls.config();
    folder.write("a.key", "");
    tls.reload().expect_err("no key");
    assert!(std::sync::Arc::ptr_eq(&config, &tls.config()));
    let status = tls.status();
    assert_eq!((status.reloads, status.failed_reloads), (1, 1));
}

#[test]
fn names_of_a_certificate_are_read_and_two_subjects_never_look_alike() {
    let der = |subject: &[(DnType, &str)], alternatives: Vec<SanType>| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.subject_alt_names = alternatives;
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    };
    let alternatives = vec![
        SanType::Rfc822Name("ops@example.com".try_into().expect("ASCII")),
        SanType::URI("spiffe://example/billing".try_into().expect("ASCII")),
        SanType::DnsName("billing.example".try_into().expect("ASCII")),
        SanType::DnsName("other.example".try_into().expect("ASCII")),
    ];
    let subject = [(DnType::OrganizationName, "Example"), (DnType::CommonName, "billing")];
    let names = CertificateNames::of(&der(&subject, alternatives));
    assert_eq!(names.subject.as_deref(), Some("O=Example,CN=billing"));
    assert_eq!(names.common_name.as_deref(), Some("billing"));
    assert_eq!(names.dns.as_deref(), Some("billing.example"));
    assert_eq!(names.uri.as_deref(), Some("spiffe://example/billing"));
    assert_eq!(names.email.as_deref(), Some("ops@example.com"));
    let forged =
        CertificateNames::of(&der(&[(DnType::OrganizationName, "Example,CN=billing")], vec![]));
    assert_eq!(forged.subject.as_deref(), Some("O=Example\\,CN\\=billing"));
    assert_eq!(forged.common_name, None);
    assert_eq!(CertificateNames::of(b"no certificate"), CertificateNames::default());
}

/// Returns the hint for a client that trusts `authority` and connects to a server with
/// `certificate`.
async fn hint_for(certificate: (PathBuf, PathBuf), authority: PathBuf) -> Option<&'static str> {
    let server = ServerTls::read(&certificate.0, &certificate.1, ClientAuthorities::None, &[]);
    let acceptor = server.expect("a certificate").acceptor();
    let files = ClientTlsFiles { authorities: Some(authority), client: None };
    let client = ClientTls::read(files).expect("an authority");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("an address"));
    let (stream, accepted) = tokio::join!(stream, listener.accept());
    let (accepted, _) = accepted.expect("a client");
    let name = ServerName::try_from("localhost").expect("a name");
    let opening = Stream::over_tls(stream.expect("a server"), &client, name);
    let (opened, _) = tokio::join!(opening, acceptor.accept(accepted));
    handshake_hint(&opened.expect_err("a certificate that is not accepted"))
}

#[tokio::test]
async fn a_certificate_that_is_not_accepted_is_explained() {
    let folder = Folder::new();
    let certificate = |name: &str, change: &dyn Fn(&mut CertificateParams)| {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("names");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let path = folder.write(&format!("{name}.pem"), &certificate.pem());
        (path, folder.write(&format!("{name}.key"), &key.serialize_pem()))
    };
    let other = certificate("other", &|_| {});
    let server = certificate("server", &|_| {});
    let renamed = certificate("renamed", &|params| {
        params.subject_alt_names = vec![SanType::DnsName("api".try_into().expect("a name"))];
    });
    let expired = certificate("expired", &|params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    let future =
        certificate("future", &|params| params.not_before = rcgen::date_time_ymd(2999, 1, 1));
    let authority = certificate("authority", &|params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    });
    for (server, trusted, word) in [
        (server, other.0, "--upstream-ca"),
        (renamed.clone(), renamed.0, "other names"),
        (expired.clone(), expired.0, "expired"),
        (future.clone(), future.0, "not valid yet"),
        (authority.clone(), authority.0, "of an authority"),
    ] {
        let hint = hint_for(server, trusted).await.expect("a reason");
        assert!(hint.contains(word), "{word}: {hint}");
    }
}
