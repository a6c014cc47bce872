//! A simulated network between a node and a server. A test can make the network fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::error::ChaosError;

/// The most bytes that are read at once in one direction.
const CHUNK: usize = 1 << 16;

/// How the network treats the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkMode {
    /// Delivers the bytes.
    Open,
    /// Delivers the bytes after this delay.
    Slow(Duration),
    /// Drops the bytes and leaves all sockets open, like a machine that died.
    Lost,
    /// Delivers the given number of further bytes of each connection. Closes the connection when
    /// more bytes arrive.
    CutAfter(usize),
}

/// A proxy that listens on a loopback port and forwards bytes to the server and back. Dropping the
/// value closes the connections.
#[derive(Debug)]
pub(crate) struct Network {
    port: u16,
    requests: watch::Sender<LinkMode>,
    replies: watch::Sender<LinkMode>,
    faults_injected: Arc<AtomicU64>,
    listening: AbortHandle,
}

impl Network {
    /// Starts a network that delivers all bytes to and from the port `server` of 127.0.0.1.
    pub(crate) async fn before(server: u16) -> Result<Self, ChaosError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(ChaosError::Port)?;
        let port = listener.local_addr().map_err(ChaosError::Port)?.port();
        let (requests, to_server) = watch::channel(LinkMode::Open);
        let (replies, to_client) = watch::channel(LinkMode::Open);
        let faults_injected = Arc::<AtomicU64>::default();
        let injected = Arc::clone(&faults_injected);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let (from_client, back) = client.into_split();
                let (from_server, forth) = server.into_split();
                let forth = pass(from_client, forth, to_server.clone(), Arc::clone(&injected));
                let back = pass(from_server, back, to_client.clone(), Arc::clone(&injected));
                // When one direction ends, the connection is closed.
                tokio::spawn(async move {
                    tokio::select! { () = forth => {}, () = back => {} }
                });
            }
        });
        Ok(Self { port, requests, replies, faults_injected, listening: listening.abort_handle() })
    }

    /// Returns the URL under which the server is reached through the network.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the port on 127.0.0.1 under which the server is reached through the network.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Sets what the network does with the bytes of requests from now on.
    pub(crate) fn requests(&self, mode: LinkMode) {
        self.requests.send_replace(mode);
    }

    /// Sets what the network does with the bytes of replies from now on.
    pub(crate) fn replies(&self, mode: LinkMode) {
        self.replies.send_replace(mode);
    }

    /// Returns how often bytes were delayed, dropped or cut.
    pub(crate) fn fault_seen(&self) -> u64 {
        self.faults_injected.load(Ordering::Relaxed)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mode: watch::Receiver<LinkMode>,
    faults_injected: Arc<AtomicU64>,
) {
    let mut bytes = vec![0; CHUNK];
    let mut passed = 0;
    let mut last_mode = LinkMode::Open;
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let now = *mode.borrow();
        if now != last_mode {
            (last_mode, passed) = (now, 0);
        }
        let delivered = match now {
            LinkMode::Open => count,
            LinkMode::Slow(time) => {
                tokio::time::sleep(time).await;
                count
            }
            LinkMode::Lost => 0,
            LinkMode::CutAfter(most) => count.min(most.saturating_sub(passed)),
        };
        if now != LinkMode::Open && (delivered < count || matches!(now, LinkMode::Slow(_))) {
            faults_injected.fetch_add(1, Ordering::Relaxed);
        }
        passed += delivered;
        let cut = delivered < count && now != LinkMode::Lost;
        if to.write_all(&bytes[..delivered]).await.is_err() || cut {
            return;
        }
    }
}
