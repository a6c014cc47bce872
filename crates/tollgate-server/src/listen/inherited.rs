//! Sockets that the service manager opened: they outlive a restart, and clients wait meanwhile.

use std::env;

use listenfd::ListenFd;
use tokio::net::{TcpListener, UnixListener};

use super::{ListenError, OpenSocket};

/// The socket that was given as `name`, which `LISTEN_FDNAMES` says, or as the number `name`.
pub(super) fn take(name: &str) -> Result<OpenSocket, ListenError> {
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut sockets = ListenFd::from_env();
    let given: Vec<String> = match names.is_empty() {
        false => names.split(':').map(str::to_owned).take(sockets.len()).collect(),
        true => (0..sockets.len()).map(|index| index.to_string()).collect(),
    };
    let failed = |error| ListenError::Open { listen: format!("systemd:{name}"), error };
    let Some(index) = given.iter().position(|one| one == name) else {
        return Err(ListenError::NotInherited { name: name.to_owned(), given });
    };
    if let Ok(Some(listener)) = sockets.take_tcp_listener(index) {
        listener.set_nonblocking(true).map_err(failed)?;
        return TcpListener::from_std(listener).map(OpenSocket::Tcp).map_err(failed);
    }
    match sockets.take_unix_listener(index).map_err(failed)? {
        Some(listener) => {
            listener.set_nonblocking(true).map_err(failed)?;
            UnixListener::from_std(listener).map(OpenSocket::Unix).map_err(failed)
        }
        None => Err(ListenError::NotInherited { name: name.to_owned(), given }),
    }
}
