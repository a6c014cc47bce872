//! What stands behind the proxies: it answers every request with the same few bytes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What every request is answered with.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                        content-length: 15\r\n\r\n{\"passed\":true}";

/// Bytes that one read takes, at most: more than any request here has.
const READ: usize = 16 * 1024;

/// A server that answers as long as the value is there.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Upstream {
    /// What its answers hold.
    pub const BODY: &str = "\"passed\":true";

    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If there is none.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(stream));
                // Of those that have ended, nothing is kept.
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, _serving: serving })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers requests that have no body, one after another.
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
