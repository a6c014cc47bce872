//! A service with a fixed capacity. Requests beyond the capacity wait in order of arrival.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The number of requests that the service processes at the same time.
pub const PLACES: u32 = 8;

/// The time that the service needs for one request.
pub const SERVICE: Duration = Duration::from_millis(100);

/// The capacity of the service in requests per second.
pub const CAPACITY: u64 = PLACES as u64 * 10;

/// The largest number of bytes that are read at once. No request of this benchmark is longer.
const READ: usize = 16 * 1024;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A service that runs until this value is dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Upstream {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let places = Arc::new(Semaphore::new(PLACES as usize));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(stream, Arc::clone(&places)));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, _serving: serving })
    }

    /// Returns the service's address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves the requests of one connection, one after another. The requests have no bodies. A request
/// is also served if its client has disconnected, because a real service detects the disconnection
/// too late.
async fn answer(mut stream: TcpStream, places: Arc<Semaphore>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::with_capacity(READ);
    while stream.read_buf(&mut head).await? > 0 {
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            let place = places.acquire().await;
            tokio::time::sleep(SERVICE).await;
            drop(place);
            stream.write_all(ANSWER).await?;
        }
    }
    Ok(())
}
