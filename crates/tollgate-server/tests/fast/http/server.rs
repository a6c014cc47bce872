//! A listener on a real socket that runs until a test ends it.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tollgate::Limiter;
use tollgate::model::Policy;
use tollgate::store::Memory;
use tollgate_server::{
    ConnectionLimits, DrainTimeout, HttpListener, HttpOptions, Listener, ListenerCounters, Port,
    Served, serve,
};

use super::world::policy;

const DRAIN: Duration = Duration::from_secs(30);

/// A server that runs until its test ends it.
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) counters: Arc<ListenerCounters>,
    end: oneshot::Sender<()>,
    served: JoinHandle<Result<(), DrainTimeout>>,
}

impl Server {
    pub(crate) fn start(options: HttpOptions, limits: ConnectionLimits) -> Self {
        Self::of(policy(), options, limits)
    }

    /// Starts a server with this policy.
    pub(crate) fn of(policy: Policy, options: HttpOptions, limits: ConnectionLimits) -> Self {
        let listener = Listener::open(&"127.0.0.1:0".parse().unwrap(), Port::Exclusive).unwrap();
        let address = listener.local_address().unwrap();
        let limiter = Arc::new(Limiter::new(policy, Memory::default()));
        let service = HttpListener::new(limiter, options, limits);
        let (end, ended) = oneshot::channel();
        let listeners = vec![Served::new("http", listener, limits, service)];
        let counters = Arc::clone(listeners[0].slots().counters());
        let served = tokio::spawn(serve(listeners, DRAIN, async move {
            let _ = ended.await;
        }));
        Self { address, counters, end, served }
    }

    pub(crate) async fn end(self) -> Result<(), DrainTimeout> {
        self.end.send(()).unwrap();
        self.served.await.unwrap()
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.unwrap()
    }
}
