//! An open-loop load: a request is sent at its time, whether or not earlier requests are answered.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tollgate::shed::Priority;

use super::upstream::CAPACITY;

/// The longest time that a client waits for a response. After this time, the client disconnects.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);

/// A period of the run with a constant load.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// The duration of the period in seconds.
    pub seconds: u64,
    /// The load of the period, in halves of the service's capacity: 2 is the whole capacity.
    pub halves: u64,
}

/// The result of one request.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The priority of the request.
    pub priority: Priority,
    /// The second of the run in which the request was sent.
    pub second: u64,
    /// The outcome of the request.
    pub end: End,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The request was served within [`CLIENT_TIMEOUT`], with this latency.
    Served(Duration),
    /// The request was shed, or refused by the service.
    Refused,
    /// The request was not answered in time.
    Late,
}

/// The priorities of six consecutive requests: 1/6 critical, 1/6 writes, 1/3 reads, 1/3 tests.
const MIX: [Priority; 6] = [
    Priority::Read,
    Priority::Test,
    Priority::Critical,
    Priority::Read,
    Priority::Test,
    Priority::Write,
];

/// Sends the requests of all `phases` to `proxy`. Within a phase, the requests are evenly spaced.
pub async fn send(proxy: SocketAddr, phases: &[Phase]) -> Vec<Sent> {
    let began = Instant::now();
    let (mut requests, mut second, mut count) = (JoinSet::new(), 0, 0);
    for phase in phases {
        let rate = CAPACITY * phase.halves / 2;
        for within in 0..phase.seconds {
            for index in 0..rate {
                let micros = (second + within) * 1_000_000 + index * 1_000_000 / rate;
                sleep_until(began + Duration::from_micros(micros)).await;
                let priority = MIX[count % MIX.len()];
                count += 1;
                let second = second + within;
                requests.spawn(async move {
                    Sent { priority, second, end: request(proxy, priority).await }
                });
            }
        }
        second += phase.seconds;
    }
    requests.join_all().await
}

async fn request(proxy: SocketAddr, priority: Priority) -> End {
    let sent = Instant::now();
    let answer = timeout_at(sent + CLIENT_TIMEOUT, status(proxy, priority)).await;
    match answer {
        Ok(Ok(answer)) if answer.starts_with(b"HTTP/1.1 200") => End::Served(sent.elapsed()),
        Ok(_) => End::Refused,
        Err(_) => End::Late,
    }
}

async fn status(proxy: SocketAddr, priority: Priority) -> std::io::Result<Vec<u8>> {
    let (method, path) = match priority {
        Priority::Critical => ("POST", "/charge"),
        Priority::Write => ("POST", "/item"),
        Priority::Read => ("GET", "/item"),
        Priority::Test => ("GET", "/test"),
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    );
    let mut stream = TcpStream::connect(proxy).await?;
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer)
}

/// Returns the policy of the run. `mode` is the mode of load shedding.
#[must_use]
pub fn policy(mode: &str) -> String {
    format!(
        "limits: {{ all: {{ quota: 1_000_000_000, window: 1h }} }}\n\
         shed:\n  mode: {mode}\n  fleet: {{ capacity: 16, reserve_critical: 50% }}\n  \
         worker: {{ in_flight: 12 }}\n\
         rules:\n  \
         - {{ name: charge, match: {{ path: /charge }}, limits: all, priority: critical }}\n  \
         - {{ name: trial, match: {{ path: /test }}, limits: all, priority: test }}\n  \
         - {{ name: rest, limits: all }}\n"
    )
}
