//! Load shedding: refuses requests with 503 under overload, so the most important requests are
//! still served in time.
//!
//! Two shedders, after Stripe's ("Scaling your API with rate limiters", 2017), each with a mode of
//! its own and one [`ShedMode`](tollgate_core::policy::shedding::ShedMode) over both:
//!
//! - the **fleet** sheds requests that are not critical when they would use the slots that are
//!   reserved for critical requests: two concurrency limits in the store, which all nodes share;
//! - each **worker** sheds by its own load, the lowest [`Priority`] first: requests in flight
//!   compared with a bound, which may be [adaptive](Adaptive), how long they queue, and how late
//!   tasks run. A [`ShedLevel`] that rises and falls slowly sets the share of requests that it
//!   sheds.
//!
//! [`Limiter::enter`](crate::Limiter::enter) checks both before any limit is charged, and
//! [`tower::Layer`](crate::tower::Layer) calls it for every request.

mod adaptive;
mod counts;
mod decision;
mod delay;
mod level;
mod slot;
mod worker;

pub use adaptive::{Adaptive, Aimd, Gradient, Sample, SampleOutcome, WINDOW};
pub use counts::{ShedCount, ShedCounts};
pub use decision::{FLEET_RETRY_AFTER, ShedCause, ShedDecision};
pub use delay::{INTERVAL, PersistentDelay};
pub use level::{
    MAX_FALL, MAX_LEVEL, MAX_RISE, OVERLOAD, PRIORITY_SPAN, RECOVERED, RECOVERY_TIME, ShedLevel,
    TICK,
};
pub use slot::InFlightSlot;
pub use tollgate_core::policy::Priority;
pub use worker::{HARD_LIMIT_FACTOR, Worker, WorkerStatus};
