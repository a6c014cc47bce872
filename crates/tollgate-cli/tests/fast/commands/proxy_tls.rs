//! `tollgate proxy` with clients over TLS.

use std::path::Path;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::support::certificates::{Authority, TlsClient};
use crate::support::node::Folder;
use crate::support::world::{Answer, Proxy, policy, service, tollgate};

const PER_CLIENT: &str = "
subjects: { client: { tls_client: common_name } }
limits: { each: { quota: 2, window: 1h, per: client } }
rules: [ { name: clients, match: { has: client }, limits: each } ]
";

fn start(authority: &Authority, policy: &Path, more: &[&str]) -> Proxy {
    authority.issue("server", "localhost");
    let (certificate, key) = (authority.flag("server.pem"), authority.flag("server.key"));
    let mut flags = vec!["--tls-cert", &certificate, "--tls-key", &key];
    flags.extend(more);
    Proxy::start_with("127.0.0.1:0", &format!("http://{}", service()), policy, &flags)
}

fn status(client: &TlsClient, proxy: &Proxy, fields: &str) -> u16 {
    let head = format!("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n");
    Answer::parse(&client.send(proxy.address, head.as_bytes()).0).status
}

#[test]
fn a_quota_per_client_certificate_holds_and_no_header_forges_it() {
    let authority = Authority::new();
    let folder = Folder::with(PER_CLIENT);
    let ca = authority.flag("ca.pem");
    let flags = ["--tls-client-ca", &ca, "--tls-client-auth", "optional"];
    let proxy = start(&authority, &folder.policy(), &flags);
    let (one, two) = (authority.client(Some("one")), authority.client(Some("two")));
    let forged = "x-forwarded-client-cert: Subject=\"CN=two\"\r\nx-ssl-client-cn: two\r\n\
                  tls_client: two\r\nclient: two\r\nclient-cert: :dHdv:\r\n";
    assert_eq!([status(&one, &proxy, ""), status(&one, &proxy, forged)], [200, 200]);
    assert_eq!([status(&one, &proxy, ""), status(&one, &proxy, forged)], [429, 429]);
    assert_eq!([status(&two, &proxy, ""), status(&two, &proxy, "")], [200, 200]);
    assert_eq!(status(&two, &proxy, ""), 429);
    let nobody = authority.client(None);
    assert_eq!([(); 4].map(|()| status(&nobody, &proxy, forged)), [200; 4]);
}

#[test]
fn a_certificate_is_replaced_on_sighup_and_kept_if_the_new_file_has_an_error() {
    let authority = Authority::new();
    let proxy = start(&authority, &policy("github.yaml"), &["--admin", "127.0.0.1:0"]);
    let client = authority.client(None);
    let shown = || client.send(proxy.address, b"").1;
    let file = || CertificateDer::from_pem_file(authority.path("server.pem")).unwrap().to_vec();
    let first = file();
    assert_eq!(shown(), first);
    authority.issue("server", "localhost");
    proxy.hang_up();
    proxy.wait_for_log("certificates reloaded");
    let second = file();
    assert!(first != second && shown() == second);
    authority.write("server.key", "nothing");
    proxy.hang_up();
    let line = proxy.wait_for_log("certificates not reloaded");
    assert!(line.contains("server.key") && line.contains("no private key"), "{line}");
    assert_eq!(shown(), second);
}

#[test]
fn a_file_that_cannot_be_used_is_named_at_the_start() {
    let authority = Authority::new();
    authority.issue("server", "localhost");
    authority.write("bad.pem", "nothing");
    let policy = policy("github.yaml");
    let (server, key) = (authority.flag("server.pem"), authority.flag("server.key"));
    let bad = authority.flag("bad.pem");
    for flags in [
        vec!["--tls-cert", &bad, "--tls-key", &key],
        vec!["--tls-cert", &server, "--tls-key", &bad],
        vec!["--tls-cert", &server, "--tls-key", &key, "--tls-client-ca", &bad],
    ] {
        let mut arguments = vec!["proxy", "--upstream", "http://127.0.0.1:1", "--policy"];
        arguments.push(policy.to_str().unwrap());
        arguments.extend(flags);
        let output = tollgate(&arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(&bad), "{error}");
        assert!(error.contains("the file should contain"), "{error}");
    }
}
