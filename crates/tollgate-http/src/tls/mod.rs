//! TLS of listeners and of connections to upstreams: certificates from PEM files that can be
//! replaced while connections are open.

mod client;
mod files;
mod handshake;
mod names;
mod reload;
mod server;

pub use client::{ClientTls, ClientTlsFiles};
pub use files::{TlsError, certificates, trust_anchors};
pub use handshake::handshake_hint;
pub use names::CertificateNames;
pub use reload::CertificateStatus;
pub use server::{ClientAuthorities, ServerTls};

#[cfg(test)]
mod tests;
