//! A reverse proxy that limits what passes through it.
//!
//! [`run()`] takes HTTP/1.1 and HTTP/2 (in clear text, from the first byte on) and forwards it as HTTP/1.1 to one
//! [`Upstream`]. What limits is a [tower layer](tower_layer::Layer) around [`Forward`]: the proxy itself knows nothing
//! of limits of that kind, only of those that keep it status ([`Limits`], [`Timeouts`]).
//!
//! Bodies are streamed both ways and never collected. A request reaches the upstream only if every server would read
//! it in the same way: before HTTP is parsed, a strict reader follows the framing of each connection, and refuses what
//! request smuggling is made of.
//!
//! What the proxy refuses or cannot do it tells by a problem (RFC 9457), and never with an address of what stands
//! behind it. A client that closes its sending side counts as gone, and its request is abandoned. A request is never
//! sent twice: where the upstream closes a kept connection in the moment of its use, the answer is 502.
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
mod connection_metrics;
mod connections;
mod conversation;
mod deadline;
mod error;
mod failure;
mod forward;
mod forwarded;
mod framing;
mod handler;
mod hop;
mod json_bodies;
mod least_rate;
mod pool;
mod problem;
mod run;
mod session;
mod settings;
mod strict_reader;
mod taking;
mod trusted_proxies;
mod tunnel;
mod upgrade;
mod upgrade_prep;
mod upstream;
mod upstream_link;

pub use body::{BodyError, RequestBody, ResponseBody};
pub use connection_metrics::{CloseReason, ConnectionMetrics};
pub use error::Error;
pub use forward::Forward;
pub use json_bodies::JsonBodyBuffering;
pub use run::run;
pub use settings::{ForwardedFields, Limits, Settings, Timeouts};
pub use trusted_proxies::TrustedProxies;
pub use upstream::{Upstream, UpstreamError};
