//! The listeners, as written.

use super::deployment::Secret;
use crate::decode::{Flag, OneOrMore, Text, keys};

keys! {
    /// The listeners through which other programs ask `tollgate serve`. What its flags say goes first.
    struct Serve as "listeners" {
        /// HTTP with JSON, and the sub-requests of other proxies.
        http: Listener,
        /// Envoy's rate limit service.
        grpc: Listener,
        /// The Redis protocol.
        resp: Listener,
        /// For those who run it: health, readiness, status, the dashboard.
        admin: Listener,
        /// The dashboard, a page at the administration's listener, and by which names browsers reach that listener.
        dashboard: Dashboard,
    }
}

keys! {
    /// The dashboard, a page at the administration's listener.
    struct Dashboard as "a dashboard" {
        /// Whether it is served. By default true.
        enabled: Flag,
        /// The host names by which browsers reach the administration's listener, without a port: those of a proxy before it,
        /// or this machine's. Its addresses and `localhost` need not be named.
        hosts: OneOrMore<Text>,
    }
}

keys! {
    /// One listener: where it listens, and who may enter.
    struct Listener as "a listener", requires "listen" {
        /// An address and a port, `unix:/PATH`, or `systemd:NAME` for a socket that the service manager opened.
        listen: Text,
        /// The tokens of which a client has to show one, a line each. A listener that other machines reach needs them.
        tokens: Secret,
        /// Certificates, for clients that speak TLS.
        tls: ListenerTls,
    }
}

keys! {
    /// Certificates of a listener, as files in PEM form.
    struct ListenerTls as "a certificate", requires "certificate", "key" {
        /// The certificate that is shown, and those that it is signed by.
        certificate: Text,
        /// The key of `certificate`.
        key: Text,
        /// The certificate authorities (CA) of clients. If it is given, clients need a certificate that one of them signed.
        client_ca: Text,
    }
}
