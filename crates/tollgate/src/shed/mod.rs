//! Load shedding: what is refused with 503 when there is more to do than can be done, so that what
//! matters most is still done in time.
//!
//! Two shedders, after Stripe's ("Scaling your API with rate limiters", 2017), each with a mode of
//! its own and one [`ShedMode`](tollgate_core::policy::shedding::ShedMode) over both:
//!
//! - the **fleet** sheds what is not critical when it would take the places that are kept for
//!   critical requests: two concurrency limits in the store, which all nodes share;
//! - each **worker** sheds by its own load, the lowest [`Priority`] first: requests in flight beside
//!   a bound, which may be [adaptive](Adaptive), how long they queue, and how late tasks run. How
//!   much it sheds follows a [`ShedLevel`] that rises and falls slowly.
//!
//! [`Limiter::enter`](crate::Limiter::enter) asks both, before any limit is charged, and
//! [`tower::Layer`](crate::tower::Layer) does so for every request.

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
