//! Limits and TLS of HTTP server connections, shared by Tollgate's listeners and its reverse proxy.
//!
//! | item | limits or contains |
//! | --- | --- |
//! | [`accept()`], [`Connections`] | connections in total and per address; the connections that have been idle for the longest time are closed to make room |
//! | [`StrictReader`] | HTTP/1 requests: strict framing, and the time and the size of each head |
//! | [`ControlFrames`] | HTTP/2 frames that are not requests |
//! | [`LeastRate`], [`ResponseExecutor`] | clients that send or read slowly |
//! | [`PendingResponses`] | the responses of an HTTP/2 connection that wait for a body or for a store |
//! | [`ServerTls`], [`ClientTls`] | certificates, which are replaced while connections are open |
//! | [`Shutdown`] | the time to drain |
//!
//! A minor version may change any item, because this crate is made for Tollgate's own programs.

mod accept;
mod address_key;
mod close_reason;
mod connection_metrics;
mod connections;
mod control_frames;
mod conversation;
mod deadline;
mod detachable_waker;
mod framing;
pub mod http2_frames;
mod least_rate;
mod pending_responses;
mod poll_on_wake;
mod shutdown;
mod stream;
mod strict_reader;
mod tls;
mod write_stall;

pub use accept::{BACKLOG, Socket, accept, accept_tcp_now, accept_unix_now};
pub use address_key::AddressKey;
pub use close_reason::CloseReason;
pub use connection_metrics::ConnectionMetrics;
pub use connections::{
    Admission, ConnectionObserver, ConnectionRules, ConnectionSlot, Connections, EVICTABLE_AFTER,
    Evictable,
};
pub use control_frames::{ControlFrames, StreamObserver};
pub use conversation::{Conversation, UpgradeAnswer};
pub use deadline::{Deadline, MovingTimer};
pub use detachable_waker::DetachableWaker;
pub use framing::{SectionLimits, Violation, is_host, same_host};
pub use least_rate::{LEAST_BYTES_PER_SECOND, LEAST_RATE_GRACE, LeastRate, RateTerms, TooSlow};
pub use pending_responses::{PendingResponses, ResponsePoller};
pub use poll_on_wake::PollOnWake;
pub use shutdown::{Phase, Shutdown};
pub use stream::{Accepted, Stream};
pub use strict_reader::{StrictReader, StrictReaderTimeouts};
pub use tls::{
    CertificateNames, CertificateStatus, ClientAuthorities, ClientTls, ClientTlsFiles, ServerTls,
    TlsError, certificates, handshake_hint, trust_anchors,
};
pub use tokio_rustls::rustls::pki_types::ServerName;
pub use write_stall::{MAX_FRAME, ResponseExecutor, ResponseTasks, note};
