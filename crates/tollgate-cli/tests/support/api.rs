//! A small API like GitHub's: JSON, entity tags, and a count of its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::world::Proxy;

/// The longest accepted body.
const MAX_BODY_BYTES: u64 = 1 << 16;

/// A small API, which runs until the test's process ends.
pub(crate) struct Api {
    address: SocketAddr,
    requested: Arc<AtomicUsize>,
}

impl Api {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requested = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requested);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                std::thread::spawn(move || serve(&client, &count));
            }
        });
        Self { address, requested }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts a proxy in front of the API.
    pub(crate) fn behind(&self, policy: &Path) -> Proxy {
        Proxy::start_at(&format!("http://{}", self.address()), policy)
    }

    /// Returns how many requests have reached the API.
    pub(crate) fn requested(&self) -> usize {
        self.requested.load(Ordering::SeqCst)
    }
}

fn serve(client: &TcpStream, count: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(client);
    while let Some(request) = Request::read(&mut reader)? {
        count.fetch_add(1, Ordering::SeqCst);
        (&*client).write_all(request.answer().as_bytes())?;
    }
    Ok(())
}

/// The parts of a request that the response needs.
struct Request {
    method: String,
    path: String,
    knows_tag: bool,
}

impl Request {
    /// Returns the next request, or `None` after the last one.
    fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Self>> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        let path = target.split('?').next().unwrap_or_default().to_owned();
        let mut request = Self { method, path, knows_tag: false };
        let mut body_bytes = 0;
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let field = line.trim_end().to_lowercase();
            match field.split_once(": ") {
                Some(("content-length", length)) => body_bytes = length.parse().unwrap_or(0),
                Some(("if-none-match", tag)) => request.knows_tag = tag == "\"tag\"",
                Some(_) => {}
                None => break,
            }
        }
        std::io::copy(&mut reader.take(body_bytes.min(MAX_BODY_BYTES)), &mut std::io::sink())?;
        Ok(Some(request))
    }

    fn answer(&self) -> String {
        let (status, body) = match (self.method.as_str(), self.path.as_str()) {
            ("GET", _) if self.knows_tag => {
                return "HTTP/1.1 304 Not Modified\r\netag: \"tag\"\r\n\r\n".to_owned();
            }
            ("GET", "/user" | "/users/octocat") => ("200 OK", r#"{"login":"octocat","id":1}"#),
            ("GET", "/search/issues") => {
                ("200 OK", r#"{"total_count":0,"incomplete_results":false,"items":[]}"#)
            }
            ("POST", "/repos/octocat/hello/issues") => ("201 Created", r#"{"number":1}"#),
            _ => ("404 Not Found", r#"{"message":"Not Found"}"#),
        };
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json; charset=utf-8\r\netag: \"tag\"\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}
