//! Sockets that the service manager opened. While this process restarts, these sockets stay open,
//! and new clients wait in their backlog.

use std::env;
use std::sync::{LazyLock, Mutex, PoisonError};

use listenfd::ListenFd;
use tokio::net::{TcpListener, UnixListener};

use super::{ListenError, OpenSocket};

/// The sockets that this process inherited. The variables that describe the sockets are read once
/// and removed from the environment, so no child process uses the sockets.
static INHERITED: LazyLock<Mutex<InheritedSockets>> =
    LazyLock::new(|| Mutex::new(InheritedSockets::read()));

struct InheritedSockets {
    sockets: ListenFd,
    /// The names of all inherited sockets, including those that are in use already.
    names: Vec<String>,
}

/// Takes the socket with the name `name` in `LISTEN_FDNAMES`, or with the number `name`.
pub(super) fn take(name: &str) -> Result<OpenSocket, ListenError> {
    let mut given = INHERITED.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = |error| ListenError::Open { listen: format!("systemd:{name}"), error };
    let none = |given: &InheritedSockets| ListenError::NotInherited {
        name: name.to_owned(),
        given: given.names.clone(),
    };
    let Some(index) = given.names.iter().position(|one| one == name) else {
        return Err(none(&given));
    };
    if let Ok(Some(listener)) = given.sockets.take_tcp_listener(index) {
        listener.set_nonblocking(true).map_err(failed)?;
        return TcpListener::from_std(listener).map(OpenSocket::Tcp).map_err(failed);
    }
    match given.sockets.take_unix_listener(index).map_err(failed)? {
        Some(listener) => {
            listener.set_nonblocking(true).map_err(failed)?;
            UnixListener::from_std(listener).map(OpenSocket::Unix).map_err(failed)
        }
        None => Err(none(&given)),
    }
}

impl InheritedSockets {
    fn read() -> Self {
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        let sockets = ListenFd::from_env();
        let names = match names.is_empty() {
            false => names.split(':').map(str::to_owned).take(sockets.len()).collect(),
            true => (0..sockets.len()).map(|index| index.to_string()).collect(),
        };
        Self { sockets, names }
    }
}
