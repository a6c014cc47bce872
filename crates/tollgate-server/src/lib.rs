//! The listeners through which other programs call Tollgate: HTTP, Envoy's gRPC and the Redis
//! protocol.
//!
//! A listener converts requests to charges, calls the limiter, and returns the decision. This crate
//! also contains the parts that all listeners share: [addresses](Listen), access control
//! ([`Access`]), connection limits ([`ConnectionLimits`]), and a [shutdown](serve()) without failed
//! requests.

mod access;
mod connection;
mod connection_slots;
mod dashboard;
pub mod grpc;
mod history;
pub mod http;
mod http_connection;
mod listen;
mod listener_counters;
pub mod metrics;
pub mod otlp;
pub mod resp;
mod serve;

pub use access::{Access, AccessError, MAX_TOKENS, SHORTEST_TOKEN, Tokens};
pub use connection::{Connection, ConnectionHandler, ConnectionLimits};
pub use connection_slots::{ConnectionSlots, LEAST_IDLE};
pub use dashboard::Dashboard;
pub use grpc::GrpcListener;
pub use http::{HttpListener, HttpOptions, Readiness};
pub use http_connection::{
    HttpConnectionHandler, HttpConnectionLimits, HttpVersions, LAST_REQUEST, MAX_HEAD_BYTES,
    MAX_HEADER_FIELDS, MAX_STREAMS, MAX_WRITE_STALL, Peer,
};
pub use listen::{Listen, ListenError, Listener, Port};
pub use listener_counters::{CloseReason, ListenerCounters};
pub use resp::{RespListener, RespSettings};
pub use serve::{DrainTimeout, Served, serve};
pub use tollgate_http::{
    CertificateStatus, ClientAuthorities, Phase, ServerTls, Shutdown, Stream, TlsError,
};
