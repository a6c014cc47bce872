//! Rate limiting for any Rust service: limiter, stores, headers and a tower layer.
//!
//! A [`Limiter`] applies a [`Policy`](tollgate_core::Policy) with the counters of a
//! [`Store`](tollgate_core::Store): [`store::Memory`] in this process, or a store of another crate.
//! [`tower::Layer`] puts the limiter in front of any HTTP service.

pub mod clock;
pub mod decision;
pub mod hash_key;
pub mod headers;
pub mod limiter;
pub mod observe;
pub mod overrides;
pub mod problem;
pub mod receipt;
mod revision;
pub mod shed;
pub mod status;
pub mod store;
pub mod tower;
pub mod trace;

pub use clock::{Clock, CounterClock, ManualClock, SystemClock};
pub use decision::{Completion, Decision, Pending, Settlement};
pub use hash_key::HashKey;
pub use limiter::{DecisionRequest, DecisionSource, Limiter, Reservation};
pub use observe::Observer;
pub use receipt::{Receipt, ReceiptError};
pub use revision::Revision;
pub use tollgate_core as core;
pub use trace::Tracer;
