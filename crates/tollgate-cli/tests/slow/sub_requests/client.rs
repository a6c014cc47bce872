//! A client that uses plain HTTP with one connection per request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::world::Answer;

pub(crate) fn get(address: SocketAddr, path: &str, fields: &[&str]) -> Answer {
    send(address, "GET", path, fields, "")
}

pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    fields: &[&str],
    body: &str,
) -> Answer {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: api.example.com\r\nconnection: close\r\n\
         content-length: {}\r\n{fields}\r\n{body}",
        body.len()
    );
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // Reads to the end of the connection: after that the proxy has finished its work for the
    // response.
    client.read_to_end(&mut answer).unwrap();
    Answer::parse(&answer)
}
