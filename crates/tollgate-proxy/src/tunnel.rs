//! The bytes of a connection after an upgrade.
//!
//! `copy_bidirectional` of tokio copies the bytes, and has no time limit. This module adds a limit
//! on the time without a byte in either direction, and ends the tunnel at a shutdown.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional},
    time::timeout,
};
use tollgate_http::Phase;

use crate::session::Session;

/// Copies bytes in both directions between the client and the upstream of an upgraded connection,
/// until one of the two closes its end, no byte is transferred for the time `idle`, or the proxy
/// shuts down.
///
/// The client's end opens after the 101 response is sent. Bytes that the client sent before the 101
/// response wait until its end opens.
pub(crate) async fn splice(
    client: OnUpgrade,
    upstream: OnUpgrade,
    idle: Duration,
    session: Session,
) {
    let traffic = async {
        let Ok(Ok((client, upstream))) =
            timeout(idle, async { tokio::try_join!(client, upstream) }).await
        else {
            return;
        };
        let moves = Arc::new(AtomicU64::new(0));
        let mut client = ActivityIo { io: TokioIo::new(client), moves: Arc::clone(&moves) };
        let mut upstream = TokioIo::new(upstream);
        tokio::select! {
            // An error is not logged, because it concerns only the two ends, and both detect it.
            _ = copy_bidirectional(&mut client, &mut upstream) => {}
            () = idle_for(&moves, idle) => {}
        }
    };
    tokio::select! {
        () = traffic => {}
        () = session.reached(Phase::Cut) => {}
    }
}

/// Waits until no byte was read or written for the time `period`. `moves` counts the reads and
/// writes.
async fn idle_for(moves: &AtomicU64, period: Duration) {
    let mut before = moves.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(period).await;
        let now = moves.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

/// One end of a tunnel, which counts its reads and writes.
#[derive(Debug)]
struct ActivityIo<T> {
    io: T,
    moves: Arc<AtomicU64>,
}

impl<T> ActivityIo<T> {
    fn note<R>(&self, moved: &Poll<R>) {
        if moved.is_ready() {
            self.moves.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ActivityIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        self.note(&read);
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ActivityIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.note(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
