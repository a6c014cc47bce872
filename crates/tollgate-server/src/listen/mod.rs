//! Listening sockets: opened here, shared with the previous process, or opened by the service
//! manager.

mod address;
mod inherited;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::{fmt, fs, io};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tollgate_http::{Accepted, BACKLOG, ServerTls, Stream, accept_tcp_now, accept_unix_now};

pub use address::Listen;

/// An open socket, with the certificate that it presents to clients.
#[derive(Debug)]
pub struct Listener {
    socket: OpenSocket,
    tls: Option<ServerTls>,
}

#[derive(Debug)]
enum OpenSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Whether another process may listen on the same port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Port {
    /// No other process may listen on the port: opening the port in a second process fails.
    #[default]
    Exclusive,
    /// A second process of the same user may listen on the port, if it opens the port with the same
    /// option (`SO_REUSEPORT`). On a restart, the new process serves before the old process ends.
    Shared,
}

impl Listener {
    /// Opens a socket at the address `listen`. The call needs a tokio runtime. A stale unix domain
    /// socket, to which no process listens, is replaced.
    ///
    /// # Errors
    /// [`ListenError`] with the reason why the socket cannot be opened.
    pub fn open(listen: &Listen, port: Port) -> Result<Self, ListenError> {
        let failed = |error| ListenError::Open { listen: listen.to_string(), error };
        let socket = match listen {
            Listen::Tcp(address) => OpenSocket::Tcp(tcp(*address, port).map_err(failed)?),
            Listen::Unix(path) => OpenSocket::Unix(unix(path).map_err(failed)?),
            Listen::Inherited(name) => inherited::take(name)?,
        };
        Ok(Self { socket, tls: None })
    }

    /// Returns the same socket, with TLS.
    #[must_use]
    pub fn with_tls(self, tls: ServerTls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Returns the address at which the socket listens. If the port was 0, the address contains the
    /// port that the system chose.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn local_address(&self) -> io::Result<String> {
        Ok(match &self.socket {
            OpenSocket::Tcp(listener) => listener.local_addr()?.to_string(),
            OpenSocket::Unix(listener) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().map(|path| path.display().to_string());
                format!("unix:{}", path.unwrap_or_default())
            }
        })
    }

    fn tcp_client(&self, (stream, peer): (TcpStream, SocketAddr)) -> Accepted {
        // This call fails on a connection that is already closed. Serving the connection then ends
        // at once.
        let _ = stream.set_nodelay(true);
        Accepted { stream: Stream::Tcp(stream), peer: Some(peer), tls: self.tls.clone() }
    }

    fn unix_client(&self, stream: UnixStream) -> Accepted {
        Accepted { stream: Stream::Unix(stream), peer: None, tls: self.tls.clone() }
    }
}

impl tollgate_http::Socket for Listener {
    type Client = Accepted;

    async fn accept(&self) -> io::Result<Accepted> {
        Ok(match &self.socket {
            OpenSocket::Tcp(listener) => self.tcp_client(listener.accept().await?),
            OpenSocket::Unix(listener) => self.unix_client(listener.accept().await?.0),
        })
    }

    fn accept_now(&self) -> io::Result<Accepted> {
        Ok(match &self.socket {
            OpenSocket::Tcp(listener) => self.tcp_client(accept_tcp_now(listener)?),
            OpenSocket::Unix(listener) => self.unix_client(accept_unix_now(listener)?),
        })
    }

    fn address(client: &Accepted) -> Option<IpAddr> {
        client.peer.map(|peer| peer.ip())
    }
}

fn tcp(address: SocketAddr, port: Port) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(port == Port::Shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG as i32)?;
    TcpListener::from_std(socket.into())
}

fn unix(path: &PathBuf) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        // A process that was killed left the socket file behind.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale_socket(path) => {
            fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

fn is_stale_socket(path: &PathBuf) -> bool {
    let refused = std::os::unix::net::UnixStream::connect(path);
    refused.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The reason why a listener cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// The text is not an address.
    Address(String),
    /// The system cannot open the address.
    Open {
        /// The address that cannot be opened.
        listen: String,
        /// The system's error.
        error: io::Error,
    },
    /// The service manager passed no socket of this name.
    NotInherited {
        /// The requested name.
        name: String,
        /// The names of the sockets that the service manager passed.
        given: Vec<String>,
    },
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(text) => write!(
                f,
                "{text:?} is not a listen address: use 127.0.0.1:8080, unix:/path or systemd:NAME"
            ),
            Self::Open { listen, error } => write!(f, "cannot listen on {listen}: {error}"),
            Self::NotInherited { name, given } if given.is_empty() => {
                write!(f, "no socket named {name:?}: the service manager passed none")
            }
            Self::NotInherited { name, given } => write!(
                f,
                "no socket named {name:?}: the service manager passed {}",
                given.join(", ")
            ),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { error, .. } => Some(error),
            Self::Address(_) | Self::NotInherited { .. } => None,
        }
    }
}
