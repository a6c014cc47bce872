//! Load shedding: refuses requests with 503 under overload, so the most important requests are
//! still served in time.
//!
//! Two shedders decide independently, as in Stripe's design ("Scaling your API with rate limiters",
//! 2017). Each shedder has its own [`ShedMode`](tollgate_core::policy::shedding::ShedMode), and a
//! common mode can weaken both:
//!
//! - the **fleet** sheds requests that are not critical when they would use the slots that are
//!   reserved for critical requests. The slots are permits of two concurrency limits in the store,
//!   which all nodes share;
//! - each **worker**, the shedder of one node, sheds by the load of its node, the lowest
//!   [`Priority`] first: requests in flight compared with a bound, which can be
//!   [adaptive](Adaptive), the time that requests queue, and the delay of tasks. A [`ShedLevel`],
//!   which rises and falls slowly, sets the share of requests that the worker sheds.
//!
//! [`Limiter::enter`](crate::Limiter::enter) queries both shedders before any limit is charged.
//! [`tower::Layer`](crate::tower::Layer) calls `enter` for every request.

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
