use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio::{net::TcpStream, time::timeout};
use tower_service::Service;

use crate::{Settings, body::RequestBody};

/// A pool of connections to the upstream.
pub(crate) type UpstreamClient = Client<Connector, RequestBody>;

/// Makes the pool of `settings`; it connects when it is first used.
pub(crate) fn upstream_client(settings: &Settings) -> UpstreamClient {
    let (timeouts, limits) = (&settings.timeouts, &settings.limits);
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(timeouts.keep_alive_idle)
        .pool_max_idle_per_host(limits.idle_upstream_connections)
        .http1_max_buf_size(limits.response_header_bytes)
        .build(Connector::new(timeouts.connect))
}

/// Connects within a deadline that includes the look-up of the name.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    http: HttpConnector,
    limit: Duration,
}

impl Connector {
    fn new(limit: Duration) -> Self {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        Self { http, limit }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<TcpStream>>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.http.poll_ready(cx).map_err(io::Error::other)
    }

    fn call(&mut self, upstream: Uri) -> Self::Future {
        let (connecting, limit) = (self.http.call(upstream), self.limit);
        Box::pin(async move {
            match timeout(limit, connecting).await {
                Ok(connected) => connected.map_err(io::Error::other),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            }
        })
    }
}
