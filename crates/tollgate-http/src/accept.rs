//! The accept loop of a listening socket.
//!
//! The loop is written by hand, because the loops of hyper and axum accept connections without a
//! limit. At a shutdown, they also close the listening socket at once, which resets the connections
//! of up to 1,024 clients that wait in the system's backlog.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    time::Duration,
};

use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    time::sleep,
};

use crate::connections::{Admission, ConnectionObserver, Connections, Evictable, OfAddress};

/// The most clients that wait in the system's backlog of a listening socket. At a shutdown, at most
/// this many of the waiting clients are still accepted.
pub const BACKLOG: usize = 1_024;

/// A listening socket.
pub trait Socket: Send + Sync {
    /// The connection of a client that was accepted.
    type Client: Send;

    /// Waits for the next client.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Client>> + Send;

    /// Accepts a client that is already waiting, and does not wait itself. The implementation asks
    /// the system directly, because tokio updates its readiness only once per turn of its event
    /// loop.
    ///
    /// # Errors
    /// Returns the system's error, also if no client is waiting.
    fn accept_now(&self) -> io::Result<Self::Client>;

    /// Returns the address of a client. `None` on a unix domain socket.
    fn address(client: &Self::Client) -> Option<IpAddr>;
}

impl Socket for TcpListener {
    type Client = (TcpStream, SocketAddr);

    async fn accept(&self) -> io::Result<Self::Client> {
        Self::accept(self).await
    }

    fn accept_now(&self) -> io::Result<Self::Client> {
        accept_tcp_now(self)
    }

    fn address((_, peer): &Self::Client) -> Option<IpAddr> {
        Some(peer.ip())
    }
}

/// Accepts a client that is already waiting at `listener`, and does not wait itself.
///
/// # Errors
/// Returns the system's error, also if no client is waiting.
pub fn accept_tcp_now(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, peer) = SockRef::from(listener).accept()?;
    socket.set_nonblocking(true)?;
    let no_address = || io::Error::other("the client of a TCP socket has no IP address");
    Ok((TcpStream::from_std(socket.into())?, peer.as_socket().ok_or_else(no_address)?))
}

/// Accepts a client that is already waiting at `listener`, and does not wait itself.
///
/// # Errors
/// Returns the system's error, also if no client is waiting.
pub fn accept_unix_now(listener: &UnixListener) -> io::Result<UnixStream> {
    let (socket, _) = SockRef::from(listener).accept()?;
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket.into())
}

/// Accepts clients of `socket` until `stop` resolves, and passes each client that gets a permit of
/// `connections` to `begin`. After `stop`, only the clients that are already waiting are accepted,
/// because closing the socket would reset their connections. At most [`BACKLOG`] waiting clients
/// are accepted, because new clients of a busy process might never stop arriving.
pub async fn accept<S, C, O>(
    socket: S,
    connections: &Connections<C, O>,
    stop: impl Future<Output = ()>,
    mut begin: impl FnMut(S::Client, Admission<C, O>),
) where
    S: Socket,
    C: Evictable,
    O: ConnectionObserver<C>,
{
    let mut stop = pin!(stop);
    let mut accepted = None;
    loop {
        tokio::select! {
            biased;
            () = stop.as_mut() => break,
            (client, admission) = next(&socket, connections, &mut accepted) => begin(client, admission),
        }
    }
    let waiting = std::iter::from_fn(|| socket.accept_now().ok())
        .take(BACKLOG)
        .filter_map(|client| counted::<S, C, O>(client, connections));
    for (client, address) in accepted.into_iter().chain(waiting) {
        let Some(admission) = connections.try_admission(address) else { break };
        begin(client, admission);
    }
}

/// Counts the connection of `client` for the limit of its address, and returns both. If the address
/// has too many connections, closes the connection and returns `None`.
fn counted<S: Socket, C: Evictable, O: ConnectionObserver<C>>(
    client: S::Client,
    connections: &Connections<C, O>,
) -> Option<(S::Client, OfAddress<C, O>)> {
    let address = connections.count_address(S::address(&client))?;
    Some((client, address))
}

/// Waits for the next client and for a permit for this client. If the caller drops the future, a
/// client that was accepted and has no permit yet stays in `accepted` for the next call. Further
/// clients wait in the system's backlog and use no resources of this process.
async fn next<S: Socket, C: Evictable, O: ConnectionObserver<C>>(
    socket: &S,
    connections: &Connections<C, O>,
    accepted: &mut Option<(S::Client, OfAddress<C, O>)>,
) -> (S::Client, Admission<C, O>) {
    loop {
        if accepted.is_none() {
            let reserved = connections.reserve().await;
            *accepted = counted::<S, C, O>(accept_one(socket).await, connections);
            if let Some(permit) = reserved
                && let Some((client, address)) = accepted.take()
            {
                return (client, address.with(permit));
            }
            continue;
        }
        let permit = connections.permit().await;
        if let Some((client, address)) = accepted.take() {
            return (client, address.with(permit));
        }
    }
}

/// Waits for the next client, and never returns an error. If `accept` fails because of a single
/// connection, the function accepts again at once. If `accept` fails because a resource is used up
/// (file descriptors, memory), the function accepts again after a pause, which grows with each
/// further failure.
async fn accept_one<S: Socket>(socket: &S) -> S::Client {
    const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let mut pause = SHORTEST_PAUSE;
    loop {
        match socket.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_clients_own(&error) => {}
            Err(_) => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

fn is_clients_own(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;
    use crate::{ConnectionMetrics, ConnectionRules, Conversation};

    /// A socket at which clients never stop arriving.
    struct Crowded;

    impl Socket for Crowded {
        type Client = ();

        async fn accept(&self) -> io::Result<()> {
            pending().await
        }

        fn accept_now(&self) -> io::Result<()> {
            Ok(())
        }

        fn address((): &()) -> Option<IpAddr> {
            None
        }
    }

    #[tokio::test]
    async fn a_shutdown_accepts_a_full_backlog_and_no_further_clients() {
        let rules = ConnectionRules::in_total(2 * BACKLOG as u32);
        let connections = Connections::<Conversation, _>::new(rules, ConnectionMetrics::default());
        let mut begun = Vec::new();
        accept(Crowded, &connections, ready(()), |(), admission| begun.push(admission)).await;
        assert_eq!(begun.len(), BACKLOG);
    }
}
