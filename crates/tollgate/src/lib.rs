//! Rate limiting for Rust services: keys, HTTP requests, and limits that several nodes share.
//!
//! # A limit for each key
//!
//! ```
//! use tollgate::{Decision, Quota, RateLimiter};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let limiter = RateLimiter::per_key(Quota::per_minute(100).burst(20));
//! match limiter.check("alice").await {
//!     Decision::Admitted(admitted) => println!("{} left", admitted.remaining()),
//!     Decision::Refused(refused) => println!("retry after {:?}", refused.retry_after()),
//! }
//! # });
//! ```
//!
//! The counters are in this process. [`try_check`](RateLimiter::try_check) does the same without a
//! future or a runtime, and without an allocation. A [`Key`] is text, bytes, an integer, an address,
//! a pair of them, or a type of your own.
//!
//! # A limit in front of a service
//!
//! ```
//! use axum::{Router, routing::get};
//! use tollgate::{Quota, RateLimitLayer};
//!
//! async fn hello() -> &'static str {
//!     "hello"
//! }
//!
//! let app: Router = Router::new()
//!     .route("/", get(hello))
//!     .layer(RateLimitLayer::by_ip(Quota::per_second(10)));
//! # let _ = app;
//! ```
//!
//! [`RateLimitLayer`] works with every [tower](https://docs.rs/tower) service over HTTP. It refuses
//! with 429, `retry-after` and problem details, and reports the limit in `ratelimit` and
//! `ratelimit-policy`. With axum, enable the feature `axum` and serve with
//! `app.into_make_service_with_connect_info::<SocketAddr>()`: a layer that cannot see the client's
//! address answers 500 and logs what to do.
//!
//! # Several limits, subjects and rules
//!
//! ```
//! use http::request::Parts;
//! use tollgate::{Precision, Quota, RateLimitLayer, RateLimiter, Rule};
//!
//! #[derive(Clone)]
//! struct UserId(u64);
//!
//! let limiter = RateLimiter::builder()
//!     .subject("user", |parts: &Parts| parts.extensions.get::<UserId>().map(|id| id.0.to_string()))
//!     .limit("burst", Quota::per_second(10).burst(20).per("user"))
//!     .limit("hourly", Quota::per_hour(1_000).sliding(Precision::minutes(1)).per(["user", "ip"]))
//!     .rule(Rule::path("/search/**").limits(["burst"]).cost(5))
//!     .build()?; // an error names every mistake
//! let layer = RateLimitLayer::new(limiter);
//! # let _ = layer;
//! # Ok::<(), tollgate::BuildError>(())
//! ```
//!
//! # Limits that several nodes share
//!
//! Call [`store`](RequestLimiterBuilder::store) with `tollgate_backend::Redis::connect([…])`.
//! `tollgate_backend::from_file("limits.yaml")` opens the limiter and the store that a policy file
//! describes.
//!
//! # Where to look
//!
//! | task | item |
//! | --- | --- |
//! | choose an algorithm | [`Quota`] |
//! | wait instead of refusing | [`RateLimiter::until_ready`] |
//! | charge more than one unit | [`RateLimiter::check_n`], [`Rule::cost`] |
//! | look without charging | [`RateLimiter::peek`] |
//! | return units | [`RateLimiter::refund`] |
//! | charge a cost that is known at the end | [`RateLimiter::reserve`] |
//! | limit requests in flight | [`Quota::concurrent`] |
//! | use a server without tower | [`RequestLimiter::check`] |
//! | test with a clock that stands still | [`RateLimiter::clock`] |
//!
//! # Stability
//!
//! Semantic versioning covers the items at the crate's root that this page names, [`tower::Peer`],
//! [`store::Memory`] and [`store::memory::Bounds`]. The other modules and [`model`] are the lower
//! level that Tollgate's own programs use: a minor version may change them. Types of `http`,
//! `tower-layer` and `tower-service` are part of the interface; with the feature `axum`, no type of
//! axum is. The crate needs Rust 1.91.

pub mod clock;
pub mod decision;
pub mod hash_key;
pub mod headers;
#[doc(hidden)]
pub mod limiter;
pub mod observe;
pub mod overrides;
pub mod problem;
mod quota;
mod rate_limit_layer;
mod rate_limiter;
pub mod receipt;
pub mod refusal;
mod request_limiter;
mod revision;
pub mod shed;
pub mod status;
pub mod store;
pub mod tower;
pub mod trace;

pub use clock::{Clock, CounterClock, ManualClock, SystemClock};
pub use decision::{Completion, Pending, Settlement};
pub use hash_key::HashKey;
pub use limiter::{DecisionRequest, DecisionSource, Limiter};
pub use observe::Observer;
pub use quota::{Precision, Quota, QuotaError, Quotas, SubjectNames, SubjectQuota};
pub use rate_limit_layer::{RateLimitLayer, RateLimitService};
pub use rate_limiter::{
    Admitted, Decision, Key, OnStoreError, RateLimiter, Refused, Reservation, Settled, Status,
};
pub use receipt::{Receipt, ReceiptError};
pub use request_limiter::{
    BuildError, OpenStore, RequestDecision, RequestLimiter, RequestLimiterBuilder, Rule,
};
pub use revision::Revision;
pub use tollgate_core as model;
pub use tollgate_core::StoreError;
pub use trace::Tracer;

/// The Rust examples of the guide's page about the library.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
#[derive(Debug)]
pub struct LibraryPage;

/// The Rust examples of the guide's page for users of governor.
#[cfg(doctest)]
#[doc = include_str!("../docs/coming-from-governor.md")]
#[derive(Debug)]
pub struct GovernorPage;
