//! A reverse proxy that limits requests.
//!
//! [`run()`] accepts HTTP/1.1 and HTTP/2 (in clear text, with prior knowledge) and forwards
//! requests as HTTP/1.1 to one [`Upstream`]. The rate limiting is a [tower
//! layer](tower_layer::Layer) around [`Forward`]. The proxy itself only has limits that protect its
//! resources ([`Limits`], [`Timeouts`]).
//!
//! Bodies are streamed in both directions and never collected. A request reaches the upstream only
//! if every server would read it in the same way: before HTTP is parsed, a strict reader checks the
//! framing of each connection, and refuses input that could be used for request smuggling.
//!
//! Refusals and failures of the proxy are problem details (RFC 9457), which never contain an
//! address of the upstream. A client that closes its sending side counts as disconnected, and its
//! request is aborted. A request is never sent twice: if the upstream closes a pooled connection
//! while it is used, the response is 502.
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

mod admission;
mod body;
mod connect;
mod connection;
mod error;
mod failure;
mod forward;
mod forwarded;
mod handler;
mod hop;
mod json_bodies;
mod pool;
mod problem;
mod run;
mod session;
mod settings;
mod trusted_proxies;
mod tunnel;
mod upgrade;
mod upgrade_prep;
mod upstream;
mod upstream_link;

pub use body::{BodyError, RequestBody, ResponseBody};
pub use error::Error;
pub use forward::Forward;
pub use json_bodies::JsonBodyBuffering;
pub use run::run;
pub use settings::{ForwardedFields, Limits, Settings, Timeouts};
pub use tollgate_http::{CloseReason, ConnectionMetrics};
pub use trusted_proxies::TrustedProxies;
pub use upstream::{Upstream, UpstreamError};
