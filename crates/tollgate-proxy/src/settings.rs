use std::time::Duration;

use tollgate_http::{
    ClientTls, ConnectionMetrics, LEAST_BYTES_PER_SECOND, LEAST_RATE_GRACE, RateTerms, ServerTls,
};

use crate::error::Error;
use crate::error::MIN_RESPONSE_HEADER_BYTES;
use crate::json_bodies::JsonBodyBuffering;
use crate::rejected::OnRejected;
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
    /// Looks up the host names of upstreams.
    pub resolver: Resolver,
    /// The certificates of connections to `https` upstreams.
    pub upstream_tls: Option<ClientTls>,
    /// The state of the upstreams. Keep a clone to read it while the proxy runs.
    pub upstream_metrics: UpstreamMetrics,
    /// The certificate of the proxy for TLS connections of clients. By default clients connect in
    /// clear text.
    pub tls: Option<ServerTls>,
    /// Peers whose `Forwarded` and `X-Forwarded-*` fields are kept and extended. The fields of any
    /// other peer are replaced, so a client cannot forge its address. None by default.
    pub trusted_proxies: TrustedProxies,
    /// The fields that describe the client to the upstream.
    pub forwarded: ForwardedFields,
    /// The protocols that a client may upgrade to. A request for another protocol is forwarded as a
    /// plain request. Do not add `h2c`: requests inside it would bypass the limits. By default
    /// `websocket`.
    pub upgrades: Vec<String>,
    /// Whether JSON bodies are read for the layer before the layer sees their requests.
    pub json_bodies: JsonBodyBuffering,
    /// A function that is called for every request that is rejected before it reaches the layer.
    pub on_rejected: OnRejected,
    /// Counts client connections. Keep a clone to read it while the proxy runs.
    pub connection_metrics: ConnectionMetrics,
    /// The time limits.
    pub timeouts: Timeouts,
    /// The limits of sizes and numbers.
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
    /// The time for the TLS handshake of a client. Default 5 s; then its connection is closed.
    pub tls_handshake: Duration,
    /// The time from a request's first byte to the end of its head, and from the accept to the
    /// first byte. Default 5 s; then 408.
    pub request_head: Duration,
    /// The time between two pieces of a request body while the upstream is ready for more. Default
    /// 10 s; then 408.
    pub request_body_idle: Duration,
    /// The time to resolve the upstream's address, and the time to connect to it. Default 2 s; then 504.
    pub connect: Duration,
    /// The time from the end of the request's body, or from the last part that the upstream
    /// accepted, to the head of the response. Default 30 s; then 504.
    pub response_head: Duration,
    /// The time between two pieces of a response body. Default 60 s; then the response is aborted.
    pub response_body_idle: Duration,
    /// The time in which a client has to read any byte that is ready for it. Default 60 s; then its
    /// connection is closed. Over HTTP/2, a client also has to read each piece of a response (16
    /// KiB at most) within this time, even if the client's flow-control window has no room for the
    /// piece; otherwise the stream is reset.
    pub write_idle: Duration,
    /// The time for which a client may transfer less than
    /// [`least_bytes_per_second`](Limits::least_bytes_per_second) allows. Default 10 s.
    pub least_rate_grace: Duration,
    /// The time for which a connection of a client or in the upstream pool may be without a
    /// request. Default 60 s; then it is closed.
    pub keep_alive_idle: Duration,
    /// The time for which an upgraded connection may transfer no byte in either direction. Default
    /// 1 h; then it is closed.
    pub tunnel_idle: Duration,
    /// The time from the shutdown until requests in flight are aborted. Default 30 s.
    pub drain: Duration,
}

/// The limits of sizes and numbers.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Client connections at the same time, including upgraded ones. At the limit the proxy closes
    /// the connections that have been idle for the longest time, at least 1 s. If none is idle, new
    /// clients wait in the kernel's backlog. Default 10,000.
    pub connections: u32,
    /// Client connections at the same time from one IPv4 address or one /64 subnet of IPv6; 0 means
    /// no limit. Addresses in [`trusted_proxies`](Settings::trusted_proxies) have no limit. Default
    /// 256; above, new connections are closed.
    pub connections_per_address: u32,
    /// The least rate at which a client must send a request body, and read a response while bytes
    /// of it are ready, on average and after [`least_rate_grace`](Timeouts::least_rate_grace); 0
    /// means no least rate. Faster transfer counts in advance for at most 64 KiB. Upgraded
    /// connections are exempt. Default 1,024. A slower body is answered with 408; a connection that
    /// reads more slowly is closed, or its HTTP/2 stream is reset.
    pub least_bytes_per_second: u32,
    /// Bytes of a request's head, or of its trailers. Default 16 KiB; above, 431.
    pub header_bytes: usize,
    /// Fields of a request's head, or of its trailers. Default 100; above, 431.
    pub header_fields: usize,
    /// Bytes of a request's target. Default 8 KiB; above, 414.
    pub target_bytes: usize,
    /// Bytes of a request's body. Default 10 MiB; above, 413.
    pub request_body_bytes: u64,
    /// Bytes of a response's head, at least 8 KiB. Default 64 KiB; above, 502.
    pub response_header_bytes: usize,
    /// Idle connections kept to each address of an upstream. Default 64.
    pub idle_upstream_connections: usize,
    /// Concurrent requests of one HTTP/2 connection. Default 128.
    pub http2_streams: u32,
    /// HTTP/2 requests of one connection that its client reset and that are not yet cleaned up.
    /// Default 20; above, the connection is closed.
    pub http2_pending_resets: usize,
    /// Response bytes buffered for one HTTP/2 request. Default 64 KiB.
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
            forwarded: ForwardedFields::default(),
            upgrades: vec!["websocket".to_owned()],
            json_bodies: JsonBodyBuffering::default(),
            on_rejected: OnRejected::default(),
            connection_metrics: ConnectionMetrics::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
        }
    }

    /// Returns the least rate at which clients must send and read.
    pub(crate) fn least_rate(&self) -> RateTerms {
        RateTerms::new(self.limits.least_bytes_per_second, self.timeouts.least_rate_grace)
    }

    /// Checks that the settings are valid.
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
/// The longest time limit. It is far below the durations that overflow when they are added to a
/// point in time.
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
