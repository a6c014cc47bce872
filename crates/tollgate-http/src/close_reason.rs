//! Why client connections of a proxy are closed.

/// The reason why a client connection was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The client closed the connection, or asked the proxy to close it after one response.
    Client,
    /// The connection had no request for `keep_alive_idle`.
    Idle,
    /// The connection was idle or had an incomplete request head, and the proxy needed its slot for
    /// another client.
    Evicted,
    /// The client's address already had the most connections that `connections_per_address` allows.
    AddressLimit,
    /// The TLS handshake failed, or did not end within `tls_handshake`.
    TlsHandshake,
    /// The request head did not arrive within `request_head`.
    SlowHead,
    /// The request body stalled or arrived too slowly.
    SlowRequest,
    /// The client stopped reading a response, or read it too slowly. Over HTTP/2, the proxy resets
    /// only the stream.
    SlowResponse,
    /// A request was refused while nearly all connections of the proxy were in use, so its
    /// connection was closed to make room.
    Refused,
    /// The client sent too many HTTP/2 frames that are not requests.
    ControlFrames,
    /// A request was malformed, or its body was too large.
    Malformed,
    /// The proxy is shutting down.
    Shutdown,
}

impl CloseReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 12] = [
        Self::Client,
        Self::Idle,
        Self::Evicted,
        Self::AddressLimit,
        Self::TlsHandshake,
        Self::SlowHead,
        Self::SlowRequest,
        Self::SlowResponse,
        Self::Refused,
        Self::ControlFrames,
        Self::Malformed,
        Self::Shutdown,
    ];

    /// Returns the name of the reason in metrics and log lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Idle => "idle",
            Self::Evicted => "evicted",
            Self::AddressLimit => "address_limit",
            Self::TlsHandshake => "tls_handshake",
            Self::SlowHead => "slow_head",
            Self::SlowRequest => "slow_request",
            Self::SlowResponse => "slow_response",
            Self::Refused => "refused",
            Self::ControlFrames => "control_frames",
            Self::Malformed => "malformed",
            Self::Shutdown => "shutdown",
        }
    }

    /// Returns the text of the warning to log, or `None` for a reason that is no sign of an attack.
    pub(crate) const fn warning(self) -> Option<&'static str> {
        match self {
            Self::AddressLimit => Some(
                "closed new connections: their address has reached max-connections-per-address; \
                 name it in trusted_proxies if it is a proxy",
            ),
            Self::Evicted => Some("closed idle connections: all client connections are in use"),
            Self::TlsHandshake => Some(
                "closed connections: the TLS handshake failed or took too long; check that clients \
                 trust the certificate, and present their own if it is required",
            ),
            Self::SlowHead => Some("closed connections: the request head did not arrive in time"),
            Self::SlowRequest => Some("closed connections: the request body arrived too slowly"),
            Self::SlowResponse => Some("closed connections: the client reads too slowly"),
            Self::Refused => Some("closed connections after a refusal: the proxy is nearly full"),
            Self::ControlFrames => Some("closed connections: too many HTTP/2 control frames"),
            Self::Client | Self::Idle | Self::Malformed | Self::Shutdown => None,
        }
    }
}
