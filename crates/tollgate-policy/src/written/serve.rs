//! The doors, as written.

use super::deployment::Secret;
use crate::read::{Text, keys};

keys! {
    /// The doors through which other programs ask `tollgate serve`. What its flags say goes first.
    struct Serve as "doors" {
        /// HTTP with JSON, and the sub-requests of other proxies.
        http: Door,
        /// Envoy's rate limit service.
        grpc: Door,
        /// The Redis protocol.
        resp: Door,
        /// For those who run it: health, readiness, status.
        admin: Door,
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
