//! The example of the README, over a real socket.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[path = "../../examples/axum.rs"]
#[allow(dead_code, reason = "the test serves by itself instead of calling main")]
mod example;

#[tokio::test]
async fn the_axum_example_limits_by_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { example::serve(listener).await.map_err(|error| error.to_string()) });
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
