//! How long the counters of a limit last.

use super::{Algorithm, Limit};
use crate::time::Millis;

impl Limit {
    /// Returns the time after which all units of an idle limit are free: the window, the time to
    /// fill an empty token bucket, or the `permit_ttl`.
    #[must_use]
    pub const fn window(&self) -> Millis {
        match &self.algorithm {
            Algorithm::FixedWindow(limit) => limit.window(),
            Algorithm::SlidingWindow(limit) => limit.window(),
            Algorithm::TwoBucket(limit) => limit.window(),
            Algorithm::SlidingLog(limit) => limit.window(),
            Algorithm::TokenBucket(limit) => limit.fill_time(),
            Algorithm::Concurrency(limit) => limit.permit_ttl(),
        }
    }

    /// Returns the longest time from a charge or a renewal until the cell of the limit
    /// [expires](crate::decide::expires_at), by the clock of the charge. This is the
    /// [`window`](Self::window), except for two algorithms: a two-bucket estimate counts a charge
    /// for up to two windows, and a sliding window for a whole number of blocks.
    ///
    /// The record of a reservation can last longer, until the reservation expires. The units of the
    /// reservation do not.
    #[must_use]
    pub const fn cell_lifetime(&self) -> Millis {
        match &self.algorithm {
            Algorithm::SlidingWindow(limit) => {
                Millis::new(limit.blocks() * limit.precision().get())
            }
            Algorithm::TwoBucket(limit) => Millis::new(2 * limit.window().get()),
            _ => self.window(),
        }
    }
}
