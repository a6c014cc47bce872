//! Encrypted connections on which the server and the client authenticate each other.

use std::fs;
use std::time::Duration;

use crate::kit::{Certificates, Server, free_port};
use tollgate_conformance::{PlainHash, check};
use tollgate_redis::{Endpoint, Keys, LinkLimits, RedisShard, RuntimeChoice, ShardSettings, Tls};

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the TLS settings of a client that the server accepts.
fn tls(files: &Certificates) -> Tls {
    Tls {
        authorities: Some(files.path("ca.pem")),
        client: Some((files.path("client.pem"), files.path("client.key"))),
        server_name: None,
    }
}

/// Starts a server that also listens, on a second port, for clients with certificates.
async fn serve(files: &Certificates) -> (Server, u16) {
    let port = free_port();
    let arguments = files.arguments(port);
    (Server::start_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await, port)
}

fn shard(port: u16, tls: Tls) -> RedisShard {
    let endpoint: Endpoint = format!("rediss://127.0.0.1:{port}").parse().unwrap();
    let mut settings = ShardSettings::new(endpoint.with_tls(tls).unwrap());
    settings.link = LinkLimits { connect: PATIENCE, proof: PATIENCE, ..LinkLimits::default() };
    RedisShard::open(&settings, Keys::new(PlainHash), RuntimeChoice::Best).with_deadline(PATIENCE)
}

/// Returns the error with which connecting fails.
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
    let files = Certificates::new();
    let (_server, port) = serve(&files).await;
    let store = shard(port, tls(&files));
    store.ready(PATIENCE).await.unwrap();
    check(&store, "tls").await;
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let (files, others) = (Certificates::new(), Certificates::new());
    let (_server, port) = serve(&files).await;
    let tls = Tls { authorities: Some(others.path("ca.pem")), ..tls(&files) };
    let error = refusal(&shard(port, tls)).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_server_with_another_name_is_not_trusted() {
    let files = Certificates::new();
    let (_server, port) = serve(&files).await;
    let tls = Tls { server_name: Some("redis.example".into()), ..tls(&files) };
    let error = refusal(&shard(port, tls)).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_turned_away_by_the_server() {
    let files = Certificates::new();
    let (_server, port) = serve(&files).await;
    let store = shard(port, Tls { client: None, ..tls(&files) });
    refusal(&store).await;
    assert_eq!(store.status()[0].address, None);
}

#[tokio::test]
async fn a_file_that_is_no_certificate_is_named() {
    let files = Certificates::new();
    fs::write(files.path("junk.pem"), "canary").unwrap();
    let (_server, port) = serve(&files).await;
    let tls = Tls { authorities: Some(files.path("junk.pem")), ..tls(&files) };
    let error = refusal(&shard(port, tls)).await;
    assert!(error.contains("junk.pem") && !error.contains("canary"), "{error}");
}
