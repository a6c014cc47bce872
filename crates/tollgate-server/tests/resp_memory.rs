//! The memory of a connection depends on the bytes that arrived, not on announced lengths.
//!
//! The test is a separate binary, because it counts the allocations of the whole process.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use cap::Cap;
use tollgate::Limiter;
use tollgate::model::Policy;
use tollgate::store::memory::Memory;
use tollgate_server::resp::{MAX_ARGS, MAX_BULK};
use tollgate_server::{
    ConnectionLimits, Listener, Port, RespListener, RespSettings, Served, serve,
};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

const CONNECTIONS: usize = 200;

/// The most memory of one connection, in bytes: a read buffer, and the connection's own state.
const EACH: usize = 24 * 1024;

#[test]
fn announced_bytes_take_no_memory() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let inside = runtime.enter();
    let listener = Listener::open(&"127.0.0.1:0".parse().unwrap(), Port::Exclusive).unwrap();
    let address = listener.local_address().unwrap();
    let limiter = Limiter::new(Policy::default(), Memory::default());
    let endpoint = RespListener::new(Arc::new(limiter), RespSettings::default());
    let served = Served::new("resp", listener, ConnectionLimits::default(), endpoint);
    runtime.spawn(serve(vec![served], ConnectionLimits::default().idle, std::future::pending()));
    drop(inside);
    let mut connections: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| TcpStream::connect(&address).unwrap())
        .inspect(|stream| assert!(stream.set_nodelay(true).is_ok()))
        .collect();
    let before = ALLOCATED.allocated();
    for stream in &mut connections {
        let bomb = format!("PING\r\n*{MAX_ARGS}\r\n${MAX_BULK}\r\nx");
        stream.write_all(bomb.as_bytes()).unwrap();
        // This is answered in the same read that contains the announced length.
        let mut pong = [0; 7];
        stream.read_exact(&mut pong).unwrap();
        assert_eq!(&pong, b"+PONG\r\n");
    }
    let grown = ALLOCATED.allocated().saturating_sub(before);
    assert!(grown <= CONNECTIONS * EACH, "{grown} bytes for {CONNECTIONS} connections");
}
