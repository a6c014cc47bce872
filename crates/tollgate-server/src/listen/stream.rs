//! The byte stream of a connection, over any transport.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use crate::tls::ServerTls;

/// The byte stream of a connection.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix domain socket.
    Unix(UnixStream),
    /// Over TLS on TCP.
    TlsTcp(Box<TlsStream<TcpStream>>),
    /// Over TLS on a unix domain socket.
    TlsUnix(Box<TlsStream<UnixStream>>),
}

/// A connection that was accepted, before the TLS handshake.
#[derive(Debug)]
pub struct Accepted {
    pub(super) stream: Stream,
    pub(crate) peer: Option<SocketAddr>,
    pub(super) tls: Option<ServerTls>,
}

impl Accepted {
    /// Completes the TLS handshake, if the listener uses TLS.
    pub(crate) async fn handshake(self) -> io::Result<Stream> {
        let Some(acceptor) = self.tls.map(|tls| tls.acceptor()) else { return Ok(self.stream) };
        Ok(match self.stream {
            Stream::Tcp(stream) => Stream::TlsTcp(Box::new(acceptor.accept(stream).await?)),
            Stream::Unix(stream) => Stream::TlsUnix(Box::new(acceptor.accept(stream).await?)),
            spoken => spoken,
        })
    }
}

/// Calls the same method on the stream of any transport.
macro_rules! carried {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
            Stream::TlsTcp($stream) => $call,
            Stream::TlsUnix($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        carried!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        carried!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        carried!(self, stream => Pin::new(stream).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Unix(_))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carried!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carried!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
