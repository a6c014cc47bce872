//! A network between a client and a server. The network can fail.

#![allow(dead_code, reason = "each test file uses the faults that it is about")]

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How the network treats the bytes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The network delivers the bytes.
    Open,
    /// The network delivers the bytes after this delay.
    Slow(Duration),
    /// The network buffers the bytes and keeps all sockets open. The network delivers the bytes
    /// once the passage is open again, as TCP does after a partition heals.
    Held,
    /// The network drops the bytes and keeps all sockets open, like a machine that died.
    Lost,
    /// The network closes the connection when there are bytes to deliver, and drops the bytes.
    Cut,
}

/// Listens on a loopback port and forwards the bytes that it receives.
pub struct Proxy {
    port: u16,
    requests: watch::Sender<Passage>,
    replies: watch::Sender<Passage>,
    listening: AbortHandle,
}

impl Proxy {
    /// Starts a working network between a free port and the port `server` on 127.0.0.1.
    pub async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (requests, to_server) = watch::channel(Passage::Open);
        let (replies, to_client) = watch::channel(Passage::Open);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let (from_client, back) = client.into_split();
                let (from_server, forth) = server.into_split();
                tokio::spawn(pass(from_client, forth, to_server.clone()));
                tokio::spawn(pass(from_server, back, to_client.clone()));
            }
        });
        Self { port, requests, replies, listening: listening.abort_handle() }
    }

    /// Returns the URL under which clients reach the server through the proxy.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sets how the network treats the bytes of requests from now on.
    pub fn requests(&self, passage: Passage) {
        self.requests.send_replace(passage);
    }

    /// Sets how the network treats the bytes of replies from now on.
    pub fn replies(&self, passage: Passage) {
        self.replies.send_replace(passage);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut passage: watch::Receiver<Passage>,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let now = *passage.borrow_and_update();
        match now {
            Passage::Open => {}
            Passage::Slow(time) => {
                tokio::time::sleep(time).await;
                // Bytes that are in transit when the network fails are lost.
                match *passage.borrow() {
                    Passage::Lost => continue,
                    Passage::Cut => return,
                    Passage::Open | Passage::Slow(_) | Passage::Held => {}
                }
            }
            Passage::Held => {
                if passage.wait_for(|passage| *passage != Passage::Held).await.is_err() {
                    return;
                }
            }
            Passage::Lost => continue,
            Passage::Cut => return,
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
