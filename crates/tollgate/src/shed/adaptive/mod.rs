//! Adaptive bounds on requests in flight, derived from the service's responses.

mod aimd;
mod gradient;

use std::num::NonZeroU32;

use tollgate_core::policy::shedding::{AdaptiveAlgorithm, AdaptiveBound};
use tollgate_core::{Millis, Timestamp};

pub use aimd::Aimd;
pub use gradient::Gradient;

/// The time for which responses are collected before the bound changes.
pub const WINDOW: Millis = Millis::new(250);

/// A bound on requests in flight that follows the service's responses. The bound uses integers only
/// and always stays between its minimum and its maximum. The bound reads no clock: the caller
/// passes `now`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adaptive {
    bound: AdaptiveBound,
    algorithm: Algorithm,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Algorithm {
    Gradient(Gradient),
    Aimd(Aimd),
}

/// One response of the service, as an adaptive bound observes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time from the start of the service's work on the request to the start of its response,
    /// in microseconds.
    pub micros: u64,
    /// The number of requests in flight when the answered request was admitted, including the
    /// answered request.
    pub in_flight: u32,
    /// Whether the response shows that the service was overloaded.
    pub outcome: SampleOutcome,
}

/// The outcome of a response with regard to the service's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOutcome {
    /// The service served the request.
    Served,
    /// The service was overloaded, or did not answer.
    Overloaded,
}

impl Adaptive {
    /// Creates a bound that starts at its minimum.
    #[must_use]
    pub fn new(bound: AdaptiveBound) -> Self {
        let algorithm = match bound.algorithm {
            AdaptiveAlgorithm::Gradient => Algorithm::Gradient(Gradient::new(bound.min)),
            AdaptiveAlgorithm::Aimd { timeout } => Algorithm::Aimd(Aimd::new(bound.min, timeout)),
        };
        Self { bound, algorithm }
    }

    /// Updates the bound by a response that arrived at `now`.
    pub fn observe(&mut self, now: Timestamp, sample: Sample) {
        let (min, max) = (self.bound.min, self.bound.max);
        match &mut self.algorithm {
            Algorithm::Gradient(gradient) => gradient.observe(now, sample, min, max),
            Algorithm::Aimd(aimd) => aimd.observe(now, sample, min, max),
        }
    }

    /// Returns the most requests that may be in flight.
    #[must_use]
    pub fn get(&self) -> NonZeroU32 {
        let found = match &self.algorithm {
            Algorithm::Gradient(gradient) => gradient.get(),
            Algorithm::Aimd(aimd) => aimd.get(),
        };
        NonZeroU32::new(found).unwrap_or(self.bound.min).max(self.bound.min)
    }

    /// Returns the settings of the bound.
    #[must_use]
    pub const fn bound(&self) -> &AdaptiveBound {
        &self.bound
    }
}
