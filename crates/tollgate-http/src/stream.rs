//! The byte stream of a connection, over any transport.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{TlsStream, rustls::pki_types::ServerName};

use crate::tls::{CertificateNames, ClientTls, ServerTls};

/// The byte stream of a connection.
#[derive(Debug)]
pub enum Stream {
    /// A stream over TCP.
    Tcp(TcpStream),
    /// A stream over a unix domain socket.
    Unix(UnixStream),
    /// A stream over TLS on TCP.
    TlsTcp(Box<TlsStream<TcpStream>>),
    /// A stream over TLS on a unix domain socket.
    TlsUnix(Box<TlsStream<UnixStream>>),
}

/// A connection that was accepted, before the TLS handshake.
#[derive(Debug)]
pub struct Accepted {
    /// The byte stream of the connection.
    pub stream: Stream,
    /// The address of the client. `None` on a unix domain socket.
    pub peer: Option<SocketAddr>,
    /// The certificates of the listener, if it uses TLS.
    pub tls: Option<ServerTls>,
}

impl Accepted {
    /// Completes the TLS handshake, if the listener uses TLS.
    ///
    /// # Errors
    /// The error of the handshake, if the handshake failed.
    pub async fn handshake(self) -> io::Result<Stream> {
        let Some(acceptor) = self.tls.map(|tls| tls.acceptor()) else { return Ok(self.stream) };
        Ok(match self.stream {
            Stream::Tcp(stream) => Stream::TlsTcp(Box::new(acceptor.accept(stream).await?.into())),
            Stream::Unix(stream) => {
                Stream::TlsUnix(Box::new(acceptor.accept(stream).await?.into()))
            }
            spoken => spoken,
        })
    }
}

impl Stream {
    /// Completes the TLS handshake with the server `name` on `stream`.
    ///
    /// # Errors
    /// The error of the handshake, for example because the server's certificate is for another
    /// name.
    pub async fn over_tls(
        stream: TcpStream,
        tls: &ClientTls,
        name: ServerName<'static>,
    ) -> io::Result<Self> {
        let stream = tls.connector().connect(name, stream).await?;
        Ok(Self::TlsTcp(Box::new(stream.into())))
    }

    /// Returns the names in the certificate that the peer presented and that was verified.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<CertificateNames> {
        self.peer_certificate_bytes().map(CertificateNames::of)
    }

    /// Returns the certificate that the peer presented and that was verified, in DER form.
    #[must_use]
    pub fn peer_certificate_bytes(&self) -> Option<&[u8]> {
        let certificates = match self {
            Self::TlsTcp(stream) => stream.get_ref().1.peer_certificates(),
            Self::TlsUnix(stream) => stream.get_ref().1.peer_certificates(),
            Self::Tcp(_) | Self::Unix(_) => None,
        };
        certificates?.first().map(|first| &**first)
    }
}

/// Calls a method of the stream's transport.
macro_rules! delegate {
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
        delegate!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Unix(_))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
