//! The listeners through which other programs call Tollgate: HTTP, Envoy's gRPC and the Redis
//! protocol.
//!
//! A listener converts requests to charges, calls the limiter, and returns the decision. This crate
//! also contains the parts that all listeners share: [addresses](Listen), access control
//! ([`Access`]), connection limits ([`ConnectionLimits`]), and a [shutdown](serve()) without failed
//! requests.

mod access;
mod connection;
mod dashboard;
pub mod grpc;
pub mod http;
mod hyper_door;
mod listen;
pub mod metrics;
mod on_wake;
pub mod otlp;
mod places;
pub mod resp;
mod serve;
mod shutdown;
mod tls;

pub use access::{Access, AccessError, MAX_TOKENS, SHORTEST_TOKEN, Tokens};
pub use connection::{Connection, ConnectionLimits, Door};
pub use dashboard::Dashboard;
pub use grpc::GrpcListener;
pub use http::{HttpListener, HttpOptions, Readiness};
pub use hyper_door::{
    Holding, HttpVersions, HyperDoor, LAST_REQUEST, LONGEST_UNTAKEN, MAX_HEAD_BYTES,
    MAX_HEADER_FIELDS, MAX_STREAMS, Peer,
};
pub use listen::{Listen, ListenError, Listener, Port, Stream};
pub use places::{LEAST_IDLE, Places};
pub use resp::{RespListener, RespSettings};
pub use serve::{DrainTimeout, Served, serve};
pub use shutdown::{Phase, Shutdown};
pub use tls::{ServerTls, TlsError};
