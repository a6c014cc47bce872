//! Reads the statistics of a memcached server.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tollgate_memcached::Address;

/// The most bytes of a response that are read; a server sends about 4 KiB.
const MOST: u64 = 64 << 10;

/// Returns the response of the server at `address` to `stats`.
///
/// # Errors
/// The reason why the server did not respond within the time `within`.
pub(super) async fn stats(
    address: &str,
    within: Duration,
) -> Result<BTreeMap<String, String>, String> {
    let address: Address = address.parse().map_err(|error| format!("{error}"))?;
    match timeout(within, query(&address)).await {
        Ok(message) => message.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", within.as_secs())),
    }
}

async fn query(address: &Address) -> io::Result<BTreeMap<String, String>> {
    match address {
        Address::Tcp { host, port } => {
            read(TcpStream::connect((host.as_str(), *port)).await?).await
        }
        Address::Unix(path) => read(UnixStream::connect(path).await?).await,
    }
}

async fn read<S>(mut stream: S) -> io::Result<BTreeMap<String, String>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    stream.write_all(b"stats\r\n").await?;
    let mut lines = BufReader::new(stream.take(MOST)).lines();
    let mut message = BTreeMap::new();
    while let Some(line) = lines.next_line().await? {
        let mut parts = line.splitn(3, ' ');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("STAT"), Some(name), Some(value)) => {
                message.insert(name.to_owned(), value.to_owned());
            }
            (Some("END"), None, None) => return Ok(message),
            _ => break,
        }
    }
    Err(io::Error::other("its response to `stats` is not that of memcached"))
}
