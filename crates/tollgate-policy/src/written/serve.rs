//! The doors, as written.

use super::deployment::Secret;
use crate::read::{Flag, OneOrMore, Text, keys};

keys! {
    /// The doors through which other programs ask `tollgate serve`. What its flags say goes first.
    struct Serve as "doors" {
        /// HTTP with JSON, and the sub-requests of other proxies.
        http: Door,
        /// Envoy's rate limit service.
        grpc: Door,
        /// The Redis protocol.
        resp: Door,
        /// For those who run it: health, readiness, status, the dashboard.
        admin: Door,
        /// The dashboard, a page at the administration's door, and by which names browsers reach that door.
        dashboard: Dashboard,
    }
}

keys! {
    /// The dashboard, a page at the administration's door.
    struct Dashboard as "a dashboard" {
        /// Whether it is there; `true` unless said otherwise.
        show: Flag,
        /// The host names by which browsers reach the administration's door, without a port: those of a proxy before it,
        /// or this machine's. Its addresses and `localhost` need not be named.
        hosts: OneOrMore<Text>,
    }
}

keys! {
    /// One door: where it listens, and who may enter.
    struct Door as "a door", requires "listen" {
        /// An address and a port, `unix:/PATH`, or `systemd:NAME` for a socket that the service manager opened.
        listen: Text,
        /// The tokens of which a client has to show one, a line each. A door that other machines reach needs them.
        tokens: Secret,
        /// Certificates, for clients that speak TLS.
        tls: DoorTls,
    }
}

keys! {
    /// Certificates of a door, as files in PEM form.
    struct DoorTls as "a certificate", requires "certificate", "key" {
        /// The certificate that is shown, and those that it is signed by.
        certificate: Text,
        /// The key of `certificate`.
        key: Text,
        /// The authorities of clients; with them, only clients enter that show a certificate which one of them signed.
        clients: Text,
    }
}
