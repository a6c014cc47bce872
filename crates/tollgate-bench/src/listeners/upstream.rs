//! The upstream of the proxies. It sends the same short response to every request.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The response to every request.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                        content-length: 15\r\n\r\n{\"passed\":true}";

/// The largest number of bytes that are read at once. No request of these benchmarks is longer.
const READ: usize = 16 * 1024;

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Upstream {
    /// The body of the server's responses.
    pub const BODY: &str = "\"passed\":true";

    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(stream));
                // Removes the tasks that have ended.
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, _serving: serving })
    }

    /// Returns the server's address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers the requests of one connection, one after another. The requests have no bodies.
async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::with_capacity(READ);
    while stream.read_buf(&mut head).await? > 0 {
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            stream.write_all(ANSWER).await?;
        }
    }
    Ok(())
}
