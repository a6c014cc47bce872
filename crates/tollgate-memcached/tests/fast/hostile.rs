//! Peers that are not memcached, or that stop answering like memcached.

use std::sync::Arc;
use std::time::Duration;

use crate::kit::{PATIENCE, patient, subject, take, window};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tollgate_conformance::PlainHash;
use tollgate_core::{Millis, Timestamp};
use tollgate_memcached::{Address, Keys, LinkError, Memcached, MemcachedError, ServerSettings};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

/// The answer to commands after the checks of a new connection.
#[derive(Clone, Copy)]
enum Answer {
    /// This text is sent. The number that the reply must repeat replaces each `#` in the text.
    Text(&'static str),
    /// This byte is sent without end.
    Endless(u8),
    /// Nothing is sent, and the server closes the connection.
    Hangup,
}

#[tokio::test]
async fn replies_that_make_no_sense_are_errors_and_nothing_else() {
    for answer in [
        Answer::Text("VA 5 f0 c1 O#\r\nnotacell"),
        Answer::Text("VA 1 f0 c1 O4000000000\r\nx\r\n"),
        Answer::Text("VA 99999999 f0 c1 O#\r\n"),
        Answer::Text("VA x\r\n"),
        Answer::Text("HD O#\r\nHD O#\r\n"),
        Answer::Text("\r\n\r\n\r\n"),
        Answer::Text("VALUE k 0 1\r\n1\r\nEND\r\n"),
        Answer::Text("CLIENT_ERROR bad data chunk\r\nERROR\r\n"),
        Answer::Endless(b'V'),
        Answer::Endless(b'\n'),
        Answer::Endless(0xff),
        Answer::Hangup,
    ] {
        let store = Memcached::open(&settings(serve(answer).await), Keys::new(PlainHash));
        store.ready(PATIENCE).await.unwrap();
        for _ in 0..20 {
            charge(&store, PATIENCE).await.unwrap_err();
        }
    }
}

/// The error of a server without free memory is reported as such, and its connections stay open.
#[tokio::test]
async fn a_server_without_memory_is_distinguished() {
    let answer = Answer::Text("SERVER_ERROR out of memory storing object\r\n");
    let store = Memcached::open(&settings(serve(answer).await), Keys::new(PlainHash));
    store.ready(PATIENCE).await.unwrap();
    assert_eq!(charge(&store, PATIENCE).await, Err(MemcachedError::Full));
    assert_eq!(store.status().connected, 2, "the connections are of use");
}

/// If a value is never complete, its caller waits only until the deadline.
#[tokio::test]
async fn a_value_that_does_not_come_is_waited_for_until_the_deadline() {
    let answer = Answer::Text("VA 1048576 f0 c1 O#\r\nx");
    let store = Memcached::open(&settings(serve(answer).await), Keys::new(PlainHash));
    store.ready(PATIENCE).await.unwrap();
    assert_eq!(charge(&store, Duration::from_millis(15)).await, Err(MemcachedError::TimedOut));
}

#[tokio::test]
async fn what_is_not_memcached_is_never_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = address_of(&listener);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await;
            // The connection stays open until the client closes it.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let store = Memcached::open(&settings(address), Keys::new(PlainHash));
    let call = async {
        while store.status().last_error.is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, call).await.unwrap();
    assert_eq!(charge(&store, PATIENCE).await, Err(MemcachedError::Unavailable));
    let error = store.status().last_error.unwrap();
    assert!(matches!(error, LinkError::Closed { .. }), "{error}");
}

async fn charge(store: &Memcached, within: Duration) -> Result<(), MemcachedError> {
    let (limit, subject) = (window("core", 5, Millis::from_secs(60)), subject("a"));
    let charges = [take(&limit, &subject)];
    let answer = store.apply_within(NOW, &charges, within);
    timeout(within + PATIENCE, answer).await.expect("an answer by the deadline").map(drop)
}

fn settings(address: Address) -> ServerSettings {
    ServerSettings { link: patient(), ..ServerSettings::new(address) }
}

fn address_of(listener: &TcpListener) -> Address {
    listener.local_addr().unwrap().to_string().parse().unwrap()
}

/// Starts a server that passes the checks of a new connection and answers every other command with
/// `answer`. Returns the server's address.
async fn serve(answer: Answer) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = address_of(&listener);
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move { converse(stream, *answer).await });
        }
    });
    address
}

async fn converse(stream: TcpStream, answer: Answer) -> Option<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await.ok()? {
        let number = line.split(" O").nth(1).unwrap_or("");
        let reply = match (line.as_str(), answer) {
            ("stats", _) => "STAT pid 7\r\nSTAT time 1700000000\r\nEND\r\n".to_owned(),
            (line, _) if line.starts_with("mg tg1 ") => format!("EN O{number}\r\n"),
            (_, Answer::Text(text)) => text.replace('#', number),
            (_, Answer::Hangup) => return None,
            (_, Answer::Endless(byte)) => loop {
                writer.write_all(&[byte; 4_096]).await.ok()?;
            },
        };
        writer.write_all(reply.as_bytes()).await.ok()?;
    }
    None
}
