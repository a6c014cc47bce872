//! Connections that a listener cuts off at the end of the drain.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tollgate_server::{
    Connection, ConnectionHandler, ConnectionLimits, Listener, Port, Served, serve,
};

const CLIENTS: u32 = 100;

/// A handler that never ends. While it serves a connection, it has a permit of `free`.
#[derive(Clone)]
struct Endless {
    free: Arc<Semaphore>,
    served: Arc<Semaphore>,
}

impl ConnectionHandler for Endless {
    async fn serve(self, _connection: Connection) {
        let _permit = self.free.acquire().await;
        self.served.add_permits(1);
        pending::<()>().await;
    }
}

/// The bug: `serve` returned before the connections that it cut off had ended. The process then
/// ended its runtime, and the permits of their requests were held until they expired.
#[tokio::test]
async fn connections_that_were_cut_off_outlived_the_listener() {
    let listener = Listener::open(&"127.0.0.1:0".parse().unwrap(), Port::Exclusive).unwrap();
    let address = listener.local_address().unwrap();
    let free = Arc::new(Semaphore::new(CLIENTS as usize));
    let served = Arc::new(Semaphore::new(0));
    let handler = Endless { free: Arc::clone(&free), served: Arc::clone(&served) };
    let listeners = vec![Served::new("test", listener, ConnectionLimits::default(), handler)];
    let mut clients = Vec::new();
    let shutdown = async {
        for _ in 0..CLIENTS {
            clients.push(TcpStream::connect(&address).await.unwrap());
        }
        served.acquire_many(CLIENTS).await.unwrap().forget();
    };
    let timed_out = serve(listeners, Duration::from_millis(50), shutdown).await.unwrap_err();
    assert_eq!(timed_out.left, [("test", CLIENTS)]);
    assert_eq!(free.available_permits(), CLIENTS as usize);
}
