//! Clients of the HTTP and the Redis protocol listeners, byte by byte.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::node::PATIENCE;

const BODY: &str = r#"{"limits":[{"name":"all"}]}"#;

/// A client's connection to a listener.
pub(crate) struct Client(BufReader<TcpStream>);

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the response announces the end of the connection.
    pub(crate) is_last: bool,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.get_mut().write_all(bytes.as_ref())
    }

    /// Reads one line, without its end.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Reads until the connection ends, regularly or by a reset.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("not closed"),
            _ => rest,
        }
    }

    /// Reads one HTTP response with a content length.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let status = self.line()?.split(' ').nth(1).unwrap().parse().unwrap();
        let (mut length, mut is_last) = (0, false);
        loop {
            let line = self.line()?.to_lowercase();
            match line.split_once(": ") {
                Some(("content-length", text)) => length = text.parse().unwrap(),
                Some(("connection", text)) => is_last = text == "close",
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Answer { status, is_last, body: String::from_utf8(body).unwrap() })
    }

    /// Sends a request with a body in JSON, and returns its response.
    pub(crate) fn exchange(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let length = body.len();
        self.send(format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))
        .unwrap();
        self.answer().unwrap()
    }

    /// Sends a check over HTTP on a persistent connection.
    pub(crate) fn check(&mut self) -> io::Result<Answer> {
        self.send(request("POST", "/v1/check", None))?;
        self.answer()
    }

    /// Sends three commands and QUIT in one write, and returns the first lines of their replies.
    pub(crate) fn throttle(&mut self) -> io::Result<()> {
        self.send("CL.THROTTLE k 999999 999999 60\r\nPING\r\nQUIT\r\n")?;
        let replies: Vec<String> = (0..8).map(|_| self.line()).collect::<io::Result<_>>()?;
        assert_eq!((&*replies[0], &*replies[1]), ("*5", ":0"), "{replies:?}");
        assert_eq!((&*replies[6], &*replies[7]), ("+PONG", "+OK"), "{replies:?}");
        Ok(())
    }
}

/// Formats an HTTP request, with a check's body if it is a `POST`.
pub(crate) fn request(method: &str, path: &str, token: Option<&str>) -> String {
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let body = if method == "POST" { BODY } else { "" };
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{}content-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        token.unwrap_or_default(),
        body.len()
    )
}

/// Sends a request on a new connection, and returns the response.
pub(crate) fn fetch(address: &str, method: &str, path: &str, token: Option<&str>) -> Answer {
    let mut client = Client::connect(address).unwrap();
    client.send(request(method, path, token)).unwrap();
    client.answer().unwrap()
}

/// Returns the first line of the reply to each of `commands`.
pub(crate) fn send_line(address: &str, commands: &[&str]) -> Vec<String> {
    let mut client = Client::connect(address).unwrap();
    commands
        .iter()
        .map(|command| {
            client.send(format!("{command}\r\n")).unwrap();
            client.line().unwrap()
        })
        .collect()
}
