use std::time::Duration;

use tollgate_http::{
    ClientTls, ConnectionMetrics, LEAST_BYTES_PER_SECOND, LEAST_RATE_GRACE, RateTerms, ServerTls,
};

use crate::error::Error;
use crate::error::MIN_RESPONSE_HEADER_BYTES;
use crate::json_bodies::JsonBodyBuffering;
use crate::rejected::OnRejected;
use crate::request_fields::RequestFields;
use crate::resolver::Resolver;
use crate::trusted_proxies::TrustedProxies;
use crate::upstream::Upstream;
use crate::upstream_metrics::UpstreamMetrics;
use crate::upstreams::Upstreams;

/// The settings of a proxy. [`Settings::new`] uses defaults that suit an open network.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The servers that requests are forwarded to.
    pub upstreams: Upstreams,
    /// The resolver that looks up the host names of upstreams.
    pub resolver: Resolver,
    /// The TLS settings of connections to `https` upstreams: trusted authorities and a client
    /// certificate.
    pub upstream_tls: Option<ClientTls>,
    /// The state of the upstreams, such as failures and requests in flight. Keep a clone to read
    /// the state while the proxy runs.
    pub upstream_metrics: UpstreamMetrics,
    /// The proxy's certificate for TLS connections of clients. By default clients connect without
    /// TLS.
    pub tls: Option<ServerTls>,
    /// Peers whose `Forwarded` and `X-Forwarded-*` fields are kept and extended. The fields of any
    /// other peer are replaced, so a client cannot forge its address. By default no peer is
    /// trusted.
    pub trusted_proxies: TrustedProxies,
    /// The header fields that the policy reads from requests. Their spellings with `_` are not
    /// forwarded. By default there are none.
    pub request_fields: RequestFields,
    /// The fields that describe the client to the upstream.
    pub forwarded: ForwardedFields,
    /// The protocols that a client may upgrade to. A request for another protocol is forwarded as a
    /// plain request. Do not add `h2c`, because the requests on an upgraded h2c connection would
    /// bypass the limits. The default is `websocket`.
    pub upgrades: Vec<String>,
    /// Whether the proxy reads JSON request bodies before the layer decides on their requests. By
    /// default the proxy does not read them.
    pub json_bodies: JsonBodyBuffering,
    /// A function that is called for every request that is rejected before it reaches the layer.
    pub on_rejected: OnRejected,
    /// The counters of client connections. Keep a clone to read them while the proxy runs.
    pub connection_metrics: ConnectionMetrics,
    /// The time limits of the proxy, such as the longest wait for a response.
    pub timeouts: Timeouts,
    /// The limits on sizes and counts.
    pub limits: Limits,
}

/// The fields that describe the client's address, protocol and host to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// Both the `X-Forwarded-*` fields and `Forwarded`.
    #[default]
    Both,
    /// No fields. The forwarding fields that untrusted clients send are still removed.
    Neither,
}

/// The time limits, each from 1 ms to a year. When a time limit expires, the proxy stops waiting,
/// and sends an error response if a response can still be sent.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// The time for the TLS handshake of a client, after which the connection is closed. Default: 5
    /// s.
    pub tls_handshake: Duration,
    /// The longest time from the first byte of a request to the end of its head. For the first
    /// request of a connection, the time counts from the start of the connection. After this time,
    /// the proxy answers with 408. Default: 5 s.
    pub request_head: Duration,
    /// The longest pause between two pieces of a request body while the upstream is ready for more.
    /// After this time, the proxy answers with 408. Default: 10 s.
    pub request_body_idle: Duration,
    /// The time to resolve the upstream's address, and also the time to connect to that address.
    /// After this time, the proxy answers with 504. Default: 2 s.
    pub connect: Duration,
    /// The time until the head of the response arrives. It counts from the end of the request's
    /// body, or from the last part of the body that the upstream accepted. After this time, the
    /// proxy answers with 504. Default: 30 s.
    pub response_head: Duration,
    /// The longest pause between two pieces of a response body, after which the response is
    /// aborted. Default: 60 s.
    pub response_body_idle: Duration,
    /// The longest time for which a client may read none of the bytes that are ready for it, after
    /// which its connection is closed. Over HTTP/2, a client also has to read each piece of a
    /// response (at most 16 KiB) within this time, even if its flow-control window has no room for
    /// the piece. If the client does not, the stream is reset. Without
    /// [`least_bytes_per_second`](Limits::least_bytes_per_second), a TLS client also has to read the
    /// bytes in the proxy's TLS buffer (about 64 KiB at most) within this time. Default: 60 s.
    pub write_idle: Duration,
    /// The time for which the average rate of a client may stay below
    /// [`least_bytes_per_second`](Limits::least_bytes_per_second). Default: 10 s.
    pub least_rate_grace: Duration,
    /// The time for which a connection may be without a request, after which the connection is
    /// closed. It applies to connections of clients and to pooled connections to upstreams.
    /// Default: 60 s.
    pub keep_alive_idle: Duration,
    /// The time for which an upgraded connection may transfer no byte in either direction, after
    /// which the connection is closed. Default: 1 h.
    pub tunnel_idle: Duration,
    /// The time from the start of the shutdown until requests in flight are aborted. Default: 30 s.
    pub drain: Duration,
}

/// The limits on sizes and counts.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most client connections at the same time, including upgraded connections. At the limit,
    /// the proxy closes the connections that have been idle for the longest time, if they have been
    /// idle for at least 1 s. If no connection is idle, new clients wait in the kernel's backlog.
    /// Default: 10,000.
    pub connections: u32,
    /// The most client connections at the same time from one IPv4 address or one /64 subnet of
    /// IPv6. Further connections are closed. 0 means no limit. Addresses in
    /// [`trusted_proxies`](Settings::trusted_proxies) have no limit. Default: 256.
    pub connections_per_address: u32,
    /// The least rate, in bytes per second, at which a client must send a request body, and must
    /// read a response while bytes of the response are ready. The rate is an average, which applies
    /// after [`least_rate_grace`](Timeouts::least_rate_grace). Bytes that were transferred faster
    /// count in advance, up to 64 KiB. A client that sends more slowly receives 408. If a client
    /// reads more slowly, its connection is closed, or its HTTP/2 stream is reset. Upgraded
    /// connections are exempt. 0 means no least rate. Default: 1,024.
    pub least_bytes_per_second: u32,
    /// The most bytes of a request's head, and of its trailers. Above the limit, the proxy answers
    /// with 431. Default: 16 KiB.
    pub header_bytes: usize,
    /// The most fields of a request's head, and of its trailers. Above the limit, the proxy answers
    /// with 431. Default: 100.
    pub header_fields: usize,
    /// The most bytes of a request's target. Above the limit, the proxy answers with 414. Default:
    /// 8 KiB.
    pub target_bytes: usize,
    /// The most bytes of a request's body. Above the limit, the proxy answers with 413. Default: 10
    /// MiB.
    pub request_body_bytes: u64,
    /// The most bytes of a response's head; at least 8 KiB. Above the limit, the proxy answers with
    /// 502. Default: 64 KiB.
    pub response_header_bytes: usize,
    /// The most idle connections that are kept to each address of an upstream. Default: 64.
    pub idle_upstream_connections: usize,
    /// The most concurrent requests of one HTTP/2 connection. Default: 128.
    pub http2_streams: u32,
    /// The most requests of one HTTP/2 connection that the client has reset and that are not yet
    /// cleaned up. Above the limit, the connection is closed. Default: 20.
    pub http2_pending_resets: usize,
    /// The most response bytes that are buffered for one HTTP/2 request. Default: 64 KiB.
    pub http2_send_buffer_bytes: usize,
}

impl Settings {
    /// Creates the default settings for `upstream`.
    pub fn new(upstream: Upstream) -> Self {
        Self::with_upstreams(upstream.into())
    }

    /// Creates the default settings for several upstreams.
    pub fn with_upstreams(upstreams: Upstreams) -> Self {
        Self {
            upstreams,
            resolver: Resolver::default(),
            upstream_tls: None,
            upstream_metrics: UpstreamMetrics::default(),
            tls: None,
            trusted_proxies: TrustedProxies::default(),
            request_fields: RequestFields::default(),
            forwarded: ForwardedFields::default(),
            upgrades: vec!["websocket".to_owned()],
            json_bodies: JsonBodyBuffering::default(),
            on_rejected: OnRejected::default(),
            connection_metrics: ConnectionMetrics::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
        }
    }

    /// Returns the least rate at which clients must send request bodies and read responses, with
    /// the time for which a client may stay below this rate.
    pub(crate) fn least_rate(&self) -> RateTerms {
        RateTerms::new(self.limits.least_bytes_per_second, self.timeouts.least_rate_grace)
    }

    /// Returns an error if a setting is not valid.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let limits = &self.limits;
        let sizes = [
            ("limits.connections", limits.connections as usize),
            ("limits.header_bytes", limits.header_bytes),
            ("limits.header_fields", limits.header_fields),
            ("limits.target_bytes", limits.target_bytes),
            ("limits.http2_streams", limits.http2_streams as usize),
            ("limits.http2_send_buffer_bytes", limits.http2_send_buffer_bytes),
        ];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(Error::Zero { name });
        }
        let timeouts = &self.timeouts;
        let waits = [
            ("timeouts.tls_handshake", timeouts.tls_handshake),
            ("timeouts.request_head", timeouts.request_head),
            ("timeouts.request_body_idle", timeouts.request_body_idle),
            ("timeouts.connect", timeouts.connect),
            ("timeouts.response_head", timeouts.response_head),
            ("timeouts.response_body_idle", timeouts.response_body_idle),
            ("timeouts.write_idle", timeouts.write_idle),
            ("timeouts.least_rate_grace", timeouts.least_rate_grace),
            ("timeouts.keep_alive_idle", timeouts.keep_alive_idle),
            ("timeouts.tunnel_idle", timeouts.tunnel_idle),
            // A drain time of 0 is valid.
            ("timeouts.drain", timeouts.drain.max(SHORTEST_WAIT)),
        ];
        let sound = SHORTEST_WAIT..=LONGEST_WAIT;
        if let Some((name, given)) = waits.into_iter().find(|(_, wait)| !sound.contains(wait)) {
            return Err(Error::Wait { name, given });
        }
        if self.upstream_tls.is_none() && self.upstreams.use_tls() {
            return Err(Error::UpstreamTls);
        }
        if limits.response_header_bytes < MIN_RESPONSE_HEADER_BYTES {
            return Err(Error::ResponseHeaderBytes { given: limits.response_header_bytes });
        }
        Ok(())
    }
}

const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// The longest accepted timeout: a year. The sum of this time and a point in time cannot overflow.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            tls_handshake: Duration::from_secs(5),
            request_head: Duration::from_secs(5),
            request_body_idle: Duration::from_secs(10),
            connect: Duration::from_secs(2),
            response_head: Duration::from_secs(30),
            response_body_idle: Duration::from_secs(60),
            write_idle: Duration::from_secs(60),
            least_rate_grace: LEAST_RATE_GRACE,
            keep_alive_idle: Duration::from_secs(60),
            tunnel_idle: Duration::from_secs(60 * 60),
            drain: Duration::from_secs(30),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: 256,
            least_bytes_per_second: LEAST_BYTES_PER_SECOND,
            header_bytes: 16 * 1024,
            header_fields: 100,
            target_bytes: 8 * 1024,
            request_body_bytes: 10 * 1024 * 1024,
            response_header_bytes: 64 * 1024,
            idle_upstream_connections: 64,
            http2_streams: 128,
            http2_pending_resets: 20,
            http2_send_buffer_bytes: 64 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new("http://127.0.0.1:9000".parse().expect("an upstream"))
    }

    #[test]
    fn the_defaults_are_sound() {
        assert!(settings().check().is_ok());
    }

    #[test]
    fn a_limit_of_zero_is_named() {
        let mut settings = settings();
        settings.limits.header_fields = 0;
        let error = settings.check().expect_err("zero fields");
        assert!(error.to_string().contains("limits.header_fields"), "{error}");
    }

    #[test]
    fn a_wait_of_nothing_or_for_ever_is_named() {
        for wait in [Duration::ZERO, Duration::MAX] {
            let mut settings = settings();
            settings.timeouts.connect = wait;
            let error = settings.check().expect_err("no sound wait");
            assert!(error.to_string().contains("timeouts.connect"), "{error}");
        }
        let mut settings = settings();
        settings.timeouts.drain = Duration::ZERO;
        assert!(settings.check().is_ok());
    }
}
