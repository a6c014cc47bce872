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
//! Call [`store`](RequestLimiterBuilder::store) with `tollgate_backend::Redis::connect([…])`, and
//! [`hash_key`](RequestLimiterBuilder::hash_key) with the same secret on every node.
//! `tollgate_backend::from_file("limits.yaml")` opens the limiter and the store that a policy file
//! describes.
//!
//! # Recipes for keys
//!
//! A charge of several units, and a cost that never fits:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter};
//! let limiter = RateLimiter::per_key(Quota::per_minute(100));
//! assert_eq!(limiter.try_check_n("alice", 40).remaining(), 60);
//! assert_eq!(limiter.try_check_n("alice", 101).retry_after(), None);
//! ```
//!
//! A status without a charge:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter};
//! let limiter = RateLimiter::per_key(Quota::per_minute(100));
//! assert_eq!(limiter.try_peek("alice").remaining(), 100);
//! ```
//!
//! Several quotas for each key, charged together or not at all:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter};
//! let limiter = RateLimiter::per_key([Quota::per_second(2), Quota::per_day(3)]);
//! assert!(limiter.try_check_n("alice", 2).is_admitted());
//! assert!(!limiter.try_check_n("alice", 2).is_admitted());
//! ```
//!
//! The other algorithms (see [what each algorithm admits](https://github.com/tollgate-rs/tollgate/blob/main/docs/semantics.md)):
//!
//! ```
//! # use std::time::Duration;
//! # use tollgate::{Precision, Quota, RateLimiter};
//! for quota in [
//!     Quota::per_hour(5_000).fixed_window(),
//!     Quota::per_hour(5_000).calendar_window(),
//!     Quota::per_hour(5_000).sliding(Precision::minutes(1)),
//!     Quota::per_hour(5_000).two_bucket(),
//!     Quota::new(5, Duration::from_secs(90)).sliding_log(),
//!     Quota::concurrent(8),
//! ] {
//!     assert!(RateLimiter::per_key(quota).try_check("alice").is_admitted());
//! }
//! ```
//!
//! A key of two parts, which differs from every other pair:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter};
//! let limiter = RateLimiter::per_key(Quota::per_hour(1));
//! assert!(limiter.try_check(&("acme", 42)).is_admitted());
//! assert!(limiter.try_check(&("acme", 43)).is_admitted());
//! ```
//!
//! A refusal as an error, for `?`:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter, Refused};
//! fn send(limiter: &RateLimiter, to: &str) -> Result<(), Refused> {
//!     limiter.try_check(to).into_result()?;
//!     Ok(())
//! }
//! # assert!(send(&RateLimiter::per_key(Quota::per_hour(1)), "alice").is_ok());
//! ```
//!
//! A wait for a free unit, with a deadline:
//!
//! ```
//! # use std::time::Duration;
//! # use tollgate::{Quota, RateLimiter};
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let limiter = RateLimiter::per_key(Quota::per_second(50).burst(5));
//! limiter.until_ready("api.example.com", Duration::from_secs(10)).await?;
//! # Ok::<(), tollgate::Refused>(())
//! # }).unwrap();
//! ```
//!
//! A refund, because the work turned out to be free:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter};
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let limiter = RateLimiter::per_key(Quota::per_hour(10).fixed_window());
//! let admitted = limiter.check("alice").await.into_result()?;
//! limiter.refund("alice", admitted).await?;
//! assert_eq!(limiter.peek("alice").await?.remaining(), 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! A cost that is known at the end:
//!
//! ```
//! # use std::time::Duration;
//! # use tollgate::{Quota, RateLimiter};
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let tokens = RateLimiter::per_key(Quota::per_minute(100_000).fixed_window());
//! let reservation = tokens.reserve("alice", 4_000, Duration::from_secs(60)).await?;
//! tokens.settle(reservation, 1_250).await?;
//! assert_eq!(tokens.peek("alice").await?.used(), 1_250);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! Requests in flight:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter};
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let exports = RateLimiter::per_key(Quota::concurrent(1));
//! let permit = exports.check("alice").await.into_result()?;
//! assert!(!exports.check("alice").await.is_admitted());
//! exports.release("alice", permit).await?;
//! assert!(exports.check("alice").await.is_admitted());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! The decision when a shared store does not answer:
//!
//! ```
//! # use tollgate::{OnStoreError, Quota, RateLimiter};
//! let limiter = RateLimiter::per_key(Quota::per_second(10)).on_store_error(OnStoreError::Refuse);
//! assert!(limiter.try_check("alice").is_admitted()); // the store in memory always answers
//! ```
//!
//! A smaller store:
//!
//! ```
//! use tollgate::store::memory::{Bounds, Memory};
//! # use tollgate::{Quota, RateLimiter};
//!
//! let store = Memory::new(Bounds { max_entries: 10_000, ..Bounds::default() });
//! let limiter = RateLimiter::per_key(Quota::per_second(10)).store(store);
//! # assert!(limiter.try_check("alice").is_admitted());
//! ```
//!
//! A test with a clock that advances only when the test advances it:
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use tollgate::ManualClock;
//! # use tollgate::{Quota, RateLimiter};
//!
//! let clock = Arc::new(ManualClock::default());
//! let limiter = RateLimiter::per_key(Quota::per_minute(1)).clock(clock.clone());
//! assert!(limiter.try_check("alice").is_admitted());
//! assert_eq!(limiter.try_check("alice").retry_after(), Some(Duration::from_secs(60)));
//! clock.advance_by(Duration::from_secs(60));
//! assert!(limiter.try_check("alice").is_admitted());
//! ```
//!
//! # Recipes for requests
//!
//! By an API key, of which the store only has a keyed hash:
//!
//! ```
//! # use tollgate::{Quota, RateLimitLayer, RateLimiter};
//! let limiter = RateLimiter::builder()
//!     .credential("key", "x-api-key")
//!     .limit("calls", Quota::per_minute(60).per("key"))
//!     .build()?;
//! # let _ = RateLimitLayer::new(limiter);
//! # Ok::<(), tollgate::BuildError>(())
//! ```
//!
//! Behind a proxy with a trusted `x-forwarded-for`:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter};
//! let limiter = RateLimiter::builder()
//!     .trusted_proxy("10.0.0.0/8")
//!     .limit("address", Quota::per_second(10).per("ip"))
//!     .build()?;
//! # let _ = limiter;
//! # Ok::<(), tollgate::BuildError>(())
//! ```
//!
//! A stricter limit for one path, and none for another:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter, Rule};
//! let limiter = RateLimiter::builder()
//!     .limit("general", Quota::per_second(10).per("ip"))
//!     .limit("sign-in", Quota::per_minute(5).per("ip"))
//!     .rule(Rule::path("/health").exempt())
//!     .rule(Rule::path("/login").method("POST").limits(["sign-in"]))
//!     .rule(Rule::any().limits(["general"]))
//!     .build()?;
//! # let _ = limiter;
//! # Ok::<(), tollgate::BuildError>(())
//! ```
//!
//! A server without tower:
//!
//! ```
//! # use tollgate::{Quota, RateLimiter};
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let limiter = RateLimiter::builder().limit("all", Quota::per_second(10).per("ip")).build()?;
//! let (parts, ()) = http::Request::get("/").body(())?.into_parts();
//! let mut decision = limiter.check(&parts, Some("192.0.2.7:4711".parse()?)).await;
//! assert!(decision.is_admitted());
//! decision.finish(http::StatusCode::OK); // the status of the response
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Find the right item
//!
//! | task | item |
//! | --- | --- |
//! | choose an algorithm | [`Quota`] |
//! | wait instead of refusing | [`RateLimiter::until_ready`] |
//! | charge more than one unit | [`RateLimiter::check_n`], [`Rule::cost`] |
//! | read the status without charging | [`RateLimiter::peek`] |
//! | return units | [`RateLimiter::refund`], [`RateLimiter::release`] |
//! | charge a cost that is known at the end | [`RateLimiter::reserve`] |
//! | limit requests in flight | [`Quota::concurrent`] |
//! | use a server without tower | [`RequestLimiter::check`], [`RequestDecision::finish`] |
//! | test with a clock of your own | [`RateLimiter::clock`] |
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
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
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
pub mod rollout_percentage;
pub mod shed;
pub mod status;
pub mod store;
pub mod tenants;
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
