//! `tollgate health`: asks a process whether it accepts requests, for containers and load
//! balancers.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use clap::Args;
use tollgate_server::Listen;

use crate::failure::Failure;

/// Check whether a running process accepts requests; the exit code is 0 if it does
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Its admin or HTTP listener, without TLS
    #[arg(value_name = "ADDR")]
    listener: Listen,
}

/// The time limit for connecting over TCP, and the time limit for the whole response.
const DEADLINE: Duration = Duration::from_secs(2);

/// The most bytes of a response that are read. Every health response is smaller.
const MAX_ANSWER: usize = 4 << 10;

const REQUEST: &[u8] = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let listener = &flags.listener;
    let answer = query(listener).map_err(|error| format!("cannot query {listener}: {error}"))?;
    match status(&answer) {
        Some("200") => Ok(()),
        Some(status) => {
            Err(format!("{listener} accepts no requests: it responded with {status}").into())
        }
        None => {
            Err(format!("{listener} did not respond with HTTP: is it an HTTP or admin listener?")
                .into())
        }
    }
}

fn query(listener: &Listen) -> io::Result<Vec<u8>> {
    let until = Instant::now() + DEADLINE;
    match listener {
        Listen::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, DEADLINE)?;
            stream.set_write_timeout(Some(DEADLINE))?;
            exchange(stream, |stream| stream.set_read_timeout(Some(left(until)?)))
        }
        Listen::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_write_timeout(Some(DEADLINE))?;
            exchange(stream, |stream| stream.set_read_timeout(Some(left(until)?)))
        }
        Listen::Inherited(_) => Err(io::Error::other(
            "the address of a systemd socket is unknown here: give the address that it listens on",
        )),
    }
}

fn exchange<S: Read + Write>(
    mut stream: S,
    wait: impl Fn(&S) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    let mut part = [0; 512];
    loop {
        wait(&stream)?;
        let length = stream.read(&mut part)?;
        answer.extend_from_slice(&part[..length]);
        if length == 0 || answer.len() > MAX_ANSWER {
            return Ok(answer);
        }
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Returns the status in the first line of a response, or `None` if the line is not the first line
/// of a response.
fn status(answer: &[u8]) -> Option<&str> {
    let line = answer.split(|&byte| byte == b'\r').next()?;
    let mut parts = std::str::from_utf8(line).ok()?.split(' ');
    parts.next().filter(|version| version.starts_with("HTTP/1."))?;
    parts.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_in_http_has_a_status() {
        assert_eq!(status(b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n"), Some("200"));
        assert_eq!(status(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), Some("503"));
        assert_eq!(status(b"-ERR unknown command 'GET'\r\n"), None);
        assert_eq!(status(b"\xff\xfe"), None);
        assert_eq!(status(b""), None);
    }
}
