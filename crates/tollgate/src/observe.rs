//! Who wants to hear of every decision: metrics, logs, a terminal.

use crate::limiter::Decision;

/// Hears of every decision, once, before the caller does.
pub trait Observer: Send + Sync {
    /// A request was decided on. Called on the request's way: keep it short.
    fn decided(&self, decision: &Decision);
}

/// Nobody listens.
impl Observer for () {
    fn decided(&self, _decision: &Decision) {}
}
