//! The key `serve`: the listeners.

use super::secret::Secret;
use crate::decode::{Flag, OneOrMore, Text, keys};

keys! {
    /// The listeners of `tollgate serve`. Its flags have precedence.
    struct Serve as "listeners" {
        /// HTTP with JSON, and sub-requests of other proxies.
        http: Listener,
        /// Envoy's rate limit service.
        grpc: Listener,
        /// The Redis protocol.
        resp: Listener,
        /// The admin listener, for operators: health, readiness, status, the dashboard.
        admin: Listener,
        /// The dashboard, a page at the admin listener, and the host names by which browsers reach
        /// that listener.
        dashboard: Dashboard,
    }
}

keys! {
    /// The dashboard, a page at the admin listener.
    struct Dashboard as "a dashboard" {
        /// Whether the dashboard is served. By default true.
        enabled: Flag,
        /// Whether the node keeps a sample of its requests of the last hour in memory, for
        /// simulations. Credentials in it are hashed. By default true.
        traffic_sample: Flag,
        /// The host names by which browsers reach the admin listener, without a port: those of a
        /// proxy in front of it, or of this machine. The listener's addresses and `localhost` are
        /// always accepted.
        hosts: OneOrMore<Text>,
    }
}

keys! {
    /// A listener: its address, tokens and certificates.
    struct Listener as "a listener", requires "listen" {
        /// An address and a port, `unix:/PATH`, or `systemd:NAME` for a socket that systemd opened.
        listen: Text,
        /// The source of the tokens, one per line. A client must send one of them. Required if
        /// other machines can reach the listener.
        tokens: Secret,
        /// Certificates, for clients that use TLS.
        tls: ListenerTls,
        /// The host names by which clients reach the HTTP listener, without a port. Only for
        /// `http`. Without tokens, its addresses, `localhost` and these names are accepted. With
        /// tokens or a certificate, any name is accepted unless this is set.
        hosts: OneOrMore<Text>,
    }
}

keys! {
    /// Certificates of a listener, as PEM files.
    struct ListenerTls as "a certificate", requires "certificate", "key" {
        /// The listener's certificate with its chain.
        certificate: Text,
        /// The key of `certificate`.
        key: Text,
        /// The certificate authorities (CA) of clients. If set, clients need a certificate that one
        /// of them signed.
        client_ca: Text,
    }
}
