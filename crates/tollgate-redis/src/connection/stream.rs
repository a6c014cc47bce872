//! The byte stream to a server.

use std::io;
use std::time::Duration;

use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::endpoint::Address;
use super::resolver::NameResolver;

/// The time for which sent bytes may stay unacknowledged before the socket reports an error.
///
/// With this time, the kernel detects a dead machine. Deadlines and heartbeats usually detect a
/// dead machine earlier.
const UNACKNOWLEDGED: Duration = Duration::from_secs(2);

/// After this idle time of a connection, the kernel tests whether the other machine still answers.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// A stream that can be read and written.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Opens a stream to `address`, with TLS if `tls` is set. Has no time limit.
pub(crate) async fn open(
    address: &Address,
    names: &NameResolver,
    tls: Option<&TlsConnector>,
) -> io::Result<Box<dyn Stream>> {
    #[cfg(feature = "simulation")]
    if let (Address::Tcp { host, port, .. }, Some(network)) = (address, names.network()) {
        return Ok(Box::new(network.connect(host, *port).await?));
    }
    match (address, tls) {
        (Address::Unix(path), _) => Ok(Box::new(UnixStream::connect(path).await?)),
        (Address::Tcp { host, port, .. }, None) => Ok(Box::new(tcp(host, *port, names).await?)),
        (Address::Tcp { host, port, tls: settings }, Some(connector)) => {
            let named = settings.as_ref().and_then(|settings| settings.server_name.as_deref());
            let name = ServerName::try_from(named.unwrap_or(host).to_owned())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            Ok(Box::new(connector.connect(name, tcp(host, *port, names).await?).await?))
        }
    }
}

async fn tcp(host: &str, port: u16, names: &NameResolver) -> io::Result<TcpStream> {
    let stream = names.connect(host, port).await?;
    // A call is one small write. If the socket waited for more bytes, the call would be delayed
    // until an acknowledgement arrives.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(stream)
}
