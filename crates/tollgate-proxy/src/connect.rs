use std::{future::poll_fn, time::Duration};

use http::{
    Uri,
    uri::{Parts, PathAndQuery, Scheme},
};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::{net::TcpStream, time::timeout};
use tower_service::Service;

use crate::{Upstream, failure::UpstreamFailure};

/// A connector to the upstream, with a time limit that includes name resolution.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    http: HttpConnector,
    upstream: Uri,
    limit: Duration,
}

impl Connector {
    pub(crate) fn new(upstream: &Upstream, limit: Duration) -> Self {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        let mut parts = Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(upstream.authority().clone());
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
        // All three parts are set, so this cannot fail.
        Self { http, upstream: Uri::from_parts(parts).unwrap_or_default(), limit }
    }

    pub(crate) async fn connect(&self) -> Result<TokioIo<TcpStream>, UpstreamFailure> {
        let mut http = self.http.clone();
        let connecting = async {
            poll_fn(|cx| http.poll_ready(cx)).await?;
            http.call(self.upstream.clone()).await
        };
        match timeout(self.limit, connecting).await {
            Ok(connected) => connected.map_err(|error| UpstreamFailure::to_connect(&error)),
            Err(_) => Err(UpstreamFailure::ConnectTimeout),
        }
    }
}
