//! The service behind Envoy.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Starts a service that says hello, and that refunds as many units as the request's
/// `x-please-give-back` contains. The service runs until the test's process ends.
pub(crate) fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            std::thread::spawn(move || client.map(|client| serve(&client)));
        }
    });
    address
}

fn serve(client: &TcpStream) -> std::io::Result<()> {
    // Values of fields need not be UTF-8.
    let mut lines = BufReader::new(client).split(b'\n');
    loop {
        let mut give_back = String::new();
        loop {
            let Some(line) = lines.next() else { return Ok(()) };
            let line = String::from_utf8_lossy(&line?).trim_end().to_lowercase();
            match line.split_once(": ") {
                _ if line.is_empty() => break,
                Some(("x-please-give-back", units)) => {
                    give_back = format!("x-give-back: {units}\r\n");
                }
                _ => {}
            }
        }
        let answer = format!("HTTP/1.1 200 OK\r\n{give_back}content-length: 5\r\n\r\nhello");
        (&*client).write_all(answer.as_bytes())?;
    }
}
