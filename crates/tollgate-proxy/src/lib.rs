//! A reverse proxy that limits requests.
//!
//! [`run()`] accepts HTTP/1.1 and HTTP/2, over TLS ([`ServerTls`]) or in clear text, and forwards
//! requests as HTTP/1.1 to one of its [`Upstreams`]. The rate limiting is a [tower
//! layer](tower_layer::Layer) around [`Forward`]. The proxy itself only has limits that protect its
//! resources ([`Limits`], [`Timeouts`]).
//!
//! Bodies are streamed in both directions. Only JSON request bodies are buffered, and only if
//! [`JsonBodyBuffering`] is enabled. A request reaches the upstream only if every server would read
//! it in the same way: before HTTP is parsed, a strict reader checks the framing of each
//! connection, and refuses input that could be used for request smuggling.
//!
//! Refusals and failures of the proxy are problem details (RFC 9457), which never contain an
//! address of the upstream. A client that closes its sending side counts as disconnected, and its
//! request is aborted. A request is sent again in two cases only. Either no upstream received the
//! request, or the request is idempotent and has no body, and the pooled connection that carried it
//! was closed before the response began.
//!
//! ```no_run
//! use tokio::net::TcpListener;
//! use tollgate_proxy::Settings;
//! use tower_layer::Identity;
//!
//! # async fn proxy() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = TcpListener::bind("127.0.0.1:8080").await?;
//! let settings = Settings::new("http://127.0.0.1:9000".parse()?);
//! let shutdown = async { tokio::signal::ctrl_c().await.unwrap_or(()) };
//! tollgate_proxy::run(listener, settings, Identity::new(), shutdown).await?;
//! # Ok(())
//! # }
//! ```

mod balance;
mod body;
mod connect;
mod counted_reads;
mod default_host;
mod error;
mod expected_response;
mod failure;
mod forward;
mod forwarded;
mod handler;
mod hop;
mod in_flight;
mod json_bodies;
mod pool;
mod problem;
mod rejected;
mod request_fields;
mod resolver;
mod response_body;
mod run;
mod session;
mod settings;
mod trusted_proxies;
mod tunnel;
mod upgrade;
mod upgrade_prep;
mod upload;
mod upstream;
mod upstream_link;
mod upstream_metrics;
mod upstreams;

pub use body::{BodyError, RequestBody};
pub use error::Error;
pub use forward::Forward;
pub use json_bodies::JsonBodyBuffering;
pub use rejected::{OnRejected, Rejected};
pub use request_fields::RequestFields;
pub use resolver::Resolver;
pub use response_body::ResponseBody;
pub use run::run;
pub use settings::{ForwardedFields, Limits, Settings, Timeouts};
pub use tollgate_http::{
    CertificateStatus, ClientAuthorities, ClientTls, ClientTlsFiles, CloseReason,
    ConnectionMetrics, ServerTls, TlsError,
};
pub use trusted_proxies::TrustedProxies;
pub use upstream::{Upstream, UpstreamError};
pub use upstream_metrics::{RetryCounts, UpstreamMetrics, UpstreamStatus};
pub use upstreams::{MAX_ROUTES, MAX_UPSTREAMS, Route, RouteError, Upstreams};
