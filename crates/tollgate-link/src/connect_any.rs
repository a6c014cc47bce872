//! Connects to one of the addresses of a host name.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The most addresses of one host name that are tried.
pub const MAX_ADDRESSES: usize = 16;

/// The longest time between the starts of two attempts.
const ATTEMPT_DELAY_MAX: Duration = Duration::from_millis(100);

/// The time in which the attempts for all addresses start. It is shorter than the default of
/// [`LinkLimits::connect`](crate::LinkLimits::connect), so the last address is tried too.
const ALL_STARTED: Duration = Duration::from_millis(200);

/// Connects to the first of `addresses` that accepts a connection. Has no time limit.
///
/// The next attempt starts when the previous attempt has failed, or after a short delay, and the
/// earlier attempts continue ("Happy Eyeballs", RFC 8305). An address that does not answer
/// therefore does not block the other addresses. The first [`MAX_ADDRESSES`] addresses are tried, in
/// the given order.
///
/// # Errors
/// The last error, if all attempts failed. [`io::ErrorKind::NotFound`] without addresses.
pub async fn connect_any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    match addresses {
        [address] => TcpStream::connect(address).await,
        _ => first_of(addresses, TcpStream::connect).await,
    }
}

/// Returns the first successful result of `connect` for one of `addresses`.
async fn first_of<T, F>(
    addresses: &[SocketAddr],
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T>
where
    T: Send + 'static,
    F: Future<Output = io::Result<T>> + Send + 'static,
{
    let mut left = addresses.iter().copied().take(MAX_ADDRESSES);
    let count = u32::try_from(left.len()).unwrap_or(u32::MAX);
    let delay = (ALL_STARTED / count.max(1)).min(ATTEMPT_DELAY_MAX);
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    // The attempts that are still under way end when this set is dropped.
    let mut attempts = JoinSet::new();
    loop {
        if let Some(address) = left.next() {
            attempts.spawn(connect(address));
        }
        let ended = if left.len() == 0 {
            attempts.join_next().await
        } else {
            match timeout(delay, attempts.join_next()).await {
                Ok(ended) => ended,
                Err(_) => continue,
            }
        };
        match ended {
            Some(Ok(Ok(connected))) => return Ok(connected),
            Some(Ok(Err(failed))) => error = failed,
            Some(Err(failed)) => error = io::Error::other(failed),
            None => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::limits::LinkLimits;

    /// What happens with an attempt to connect. The port of the address selects it.
    const SILENT: u16 = 1;
    const REFUSED: u16 = 2;
    const ACCEPTED: u16 = 3;
    const SLOW: u16 = 4;
    const SLOW_ANSWER: Duration = Duration::from_millis(40);

    /// Connects to addresses with `ports`. Returns the port that was connected, and the ports of
    /// all attempts.
    async fn connected(ports: &[u16]) -> (Result<u16, io::ErrorKind>, Vec<u16>) {
        let addresses: Vec<_> =
            ports.iter().map(|port| SocketAddr::from(([192, 0, 2, 1], *port))).collect();
        let tried = Arc::new(Mutex::new(Vec::new()));
        let connect = |address: SocketAddr| {
            let port = address.port();
            tried.lock().push(port);
            async move {
                match port {
                    SILENT => std::future::pending().await,
                    REFUSED => return Err(io::ErrorKind::ConnectionRefused.into()),
                    SLOW => tokio::time::sleep(SLOW_ANSWER).await,
                    _ => {}
                }
                Ok(port)
            }
        };
        let within = LinkLimits::default().connect;
        let first = timeout(within, first_of(&addresses, connect)).await;
        let first = first.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let tried = tried.lock().clone();
        (first.map_err(|error| error.kind()), tried)
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_does_not_answer_does_not_block_the_others() {
        assert_eq!(connected(&[SILENT, ACCEPTED]).await, (Ok(ACCEPTED), vec![SILENT, ACCEPTED]));
        let mut many = [SILENT; MAX_ADDRESSES];
        many[MAX_ADDRESSES - 1] = SLOW;
        assert_eq!(connected(&many).await, (Ok(SLOW), many.to_vec()));
        let (silent, tried) = connected(&[SILENT; 99]).await;
        assert_eq!((silent, tried.len()), (Err(io::ErrorKind::TimedOut), MAX_ADDRESSES));
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_address_that_answers_is_used() {
        assert_eq!(connected(&[ACCEPTED, SILENT]).await, (Ok(ACCEPTED), vec![ACCEPTED]));
        assert_eq!(connected(&[SLOW, ACCEPTED]).await, (Ok(SLOW), vec![SLOW]));
        let after_silence = [SILENT, REFUSED, SLOW];
        assert_eq!(connected(&after_silence).await, (Ok(SLOW), after_silence.to_vec()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_address_is_tried_at_once_after_a_refusal() {
        let start = tokio::time::Instant::now();
        let ports = [REFUSED, REFUSED, ACCEPTED];
        assert_eq!(connected(&ports).await, (Ok(ACCEPTED), ports.to_vec()));
        let refused = Err(io::ErrorKind::ConnectionRefused);
        assert_eq!(connected(&[REFUSED; 2]).await, (refused, vec![REFUSED; 2]));
        assert_eq!(connected(&[]).await, (Err(io::ErrorKind::NotFound), Vec::new()));
        assert!(start.elapsed().is_zero(), "the virtual clock stands still");
    }
}
