//! The upstream of the proxies: it answers every request with the same few bytes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The response to every request.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                        content-length: 15\r\n\r\n{\"passed\":true}";

/// The most bytes of one read, more than any request of these benchmarks has.
const READ: usize = 16 * 1024;

/// A server that serves until it is dropped.
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

/// Answers requests without bodies, one after another.
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
