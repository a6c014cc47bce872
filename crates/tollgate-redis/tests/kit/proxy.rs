//! A network between a client and a server that can fail.

#![allow(dead_code, reason = "each test file uses the faults that it is about")]

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// What the network does with the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Delivers them.
    Open,
    /// Delivers them after this time.
    Slow(Duration),
    /// Keeps them, with all sockets open, and delivers them once it is open again: as TCP does
    /// across a partition that heals.
    Held,
    /// Loses them, with all sockets open: as a machine does that died.
    Lost,
    /// Ends the connection when it has some to deliver, and loses them.
    Cut,
}

/// Listens on a loopback port and passes on what it is sent.
pub struct Proxy {
    port: u16,
    requests: watch::Sender<Passage>,
    replies: watch::Sender<Passage>,
    listening: AbortHandle,
}

impl Proxy {
    /// A network in good order between its own port and `server` on 127.0.0.1.
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

    /// Where clients reach the server through it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What happens from now on to the bytes of requests.
    pub fn requests(&self, passage: Passage) {
        self.requests.send_replace(passage);
    }

    /// What happens from now on to the bytes of replies.
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
                // What is on its way when the network fails is lost with it.
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
