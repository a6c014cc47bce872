//! Servers that send invalid replies.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tollgate_redis::{BatcherError, ClusterError};

use super::*;
use crate::cluster::site::{Client, Target, patient};

/// Starts a server that answers `CLUSTER` commands with `reply`, and answers `OK` to the commands
/// that open a connection. Returns the server's URL.
async fn answers(reply: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while let Ok(read) = stream.read(&mut bytes).await
                    && read > 0
                {
                    let request = String::from_utf8_lossy(&bytes[..read]).to_uppercase();
                    // Each command in the write is an array and gets one reply.
                    let commands = request.matches('*').count();
                    let answer = if request.contains("CLUSTER") { reply } else { b"+OK\r\n" };
                    for _ in 0..commands {
                        if stream.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    url
}

async fn is_told(reply: &'static [u8], reason: &str) {
    let client = Client::open(patient(&[answers(reply).await]));
    until(|| client.store.status(NOW).last_error.is_some()).await;
    let error = client.store.status(NOW).last_error.unwrap();
    assert!(error.to_string().contains(reason), "{}: {error}", reply.escape_ascii());
    assert!(matches!(error, ClusterError::Layout { .. } | ClusterError::Link(_)), "{error:?}");
    let target = Target { tenant: 1, user: 0, limits: 1 };
    assert_eq!(client.take(target).await, Err(BatcherError::Unavailable));
}

#[tokio::test]
async fn nonsense_in_place_of_a_layout_is_reported_and_asked_for_again() {
    for (reply, reason) in [
        (&b"*0\r\n"[..], "no node owns a slot"),
        (b"$-1\r\n", "does not have the form of CLUSTER SLOTS"),
        (b":7\r\n", "does not have the form of CLUSTER SLOTS"),
        (b"*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\na\r\n:1\r\n", "slots that do not exist"),
        (b"*1\r\n*3\r\n:9\r\n:3\r\n*2\r\n$1\r\na\r\n:1\r\n", "slots that do not exist"),
        (b"*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$3\r\n/\xff/\r\n:1\r\n", "no usable address"),
        (b"*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$1\r\na\r\n:0\r\n", "no usable address"),
        (b"-NOPERM no\r\n", "NOPERM"),
        (b"!!!!\r\n", ""),
    ] {
        is_told(reply, reason).await;
    }
}

#[tokio::test]
async fn a_layout_that_leads_nowhere_is_no_answer() {
    // The reply says that one node owns all slots. No process listens at the port of this node.
    let reply = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n";
    let client = Client::open(patient(&[answers(reply).await]));
    until(|| client.store.status(NOW).unowned == 0).await;
    until(|| client.store.status(NOW).groups[0].batchers[0].last_error.is_some()).await;
    let target = Target { tenant: 1, user: 0, limits: 1 };
    assert_eq!(client.take(target).await, Err(BatcherError::Unavailable));
}
