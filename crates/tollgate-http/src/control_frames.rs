use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http2_frames::FrameMeter;

/// Receives the events on the byte stream of a connection.
pub trait StreamObserver {
    /// Called with the bytes of each read that returned at least one byte.
    fn on_read(&self, _bytes: &[u8]) {}

    /// Called when the connection fails because of too many HTTP/2 control frames.
    fn on_too_many_control_frames(&self);
}

/// A client's connection that fails when the client sends too many HTTP/2 control frames.
#[derive(Debug)]
pub struct ControlFrames<S, O> {
    stream: S,
    frames: FrameMeter,
    observer: Arc<O>,
}

impl<S, O: StreamObserver> ControlFrames<S, O> {
    /// Wraps `stream`, and reports its events to `observer`.
    pub fn new(stream: S, observer: Arc<O>) -> Self {
        Self { stream, frames: FrameMeter::new(Instant::now()), observer }
    }
}

impl<S: AsyncRead + Unpin, O: StreamObserver> AsyncRead for ControlFrames<S, O> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        if read.is_empty() {
            return Poll::Ready(Ok(()));
        }
        this.observer.on_read(read);
        if let Err(error) = this.frames.receive(read, Instant::now) {
            this.observer.on_too_many_control_frames();
            return Poll::Ready(Err(io::Error::other(error)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin, O: StreamObserver> AsyncWrite for ControlFrames<S, O> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.stream).poll_write(cx, buf))?;
        this.frames.send(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, bufs))?;
        this.frames.send(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
