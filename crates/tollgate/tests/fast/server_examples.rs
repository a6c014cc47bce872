//! The examples of servers, over real sockets.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

#[path = "../../examples/axum.rs"]
#[allow(dead_code, reason = "the test serves by itself instead of calling main")]
mod example;

#[path = "../../examples/hyper.rs"]
#[allow(dead_code, reason = "the test serves by itself instead of calling main")]
mod hyper_example;

#[path = "../../examples/tonic.rs"]
#[allow(dead_code, reason = "the test serves by itself instead of calling main")]
mod tonic_example;

#[tokio::test]
async fn the_axum_example_limits_by_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { example::serve(listener).await.map_err(|error| error.to_string()) });
    three_requests_are_admitted(address).await;
}

#[tokio::test]
async fn the_hyper_example_limits_by_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = async move { hyper_example::serve(listener).await.map_err(|it| it.to_string()) };
    tokio::spawn(served);
    three_requests_are_admitted(address).await;
}

#[tokio::test]
async fn the_tonic_example_limits_by_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = async move { tonic_example::serve(listener).await.map_err(|it| it.to_string()) };
    tokio::spawn(served);
    let channel = Endpoint::try_from(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut client = HealthClient::new(channel);
    for _ in 0..3 {
        let response = client.check(HealthCheckRequest::default()).await.unwrap();
        assert!(response.metadata().contains_key("ratelimit"), "{response:?}");
    }
    let refused = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.metadata().contains_key("retry-after"), "{refused:?}");
}

async fn three_requests_are_admitted(address: SocketAddr) {
    for (status, remaining) in [("200 OK", 2), ("200 OK", 1), ("200 OK", 0), ("429 Too Many", 0)] {
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(
            answer.contains(&format!("ratelimit: \"per-address\";r={remaining};t=")),
            "{answer}"
        );
        assert_eq!(answer.contains("retry-after: "), status.starts_with("429"), "{answer}");
    }
}
