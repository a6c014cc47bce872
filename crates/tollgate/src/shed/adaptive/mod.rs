//! How many requests may be in flight, found out from how they are answered.

mod aimd;
mod gradient;

use std::num::NonZeroU32;

use tollgate_core::policy::shedding::{AdaptiveAlgorithm, AdaptiveBound};
use tollgate_core::{Millis, Timestamp};

pub use aimd::Aimd;
pub use gradient::Gradient;

/// For how long answers are gathered before the bound follows them.
pub const WINDOW: Millis = Millis::new(250);

/// A bound on requests in flight that follows how the service answers. All in integers, always
/// from its least to its most, and without a clock: the caller passes `now`.
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

/// One answer of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How long it took to begin, in microseconds.
    pub micros: u64,
    /// How many requests were in flight, this one among them.
    pub in_flight: u32,
    /// What it was.
    pub outcome: SampleOutcome,
}

/// What an answer says of the service's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOutcome {
    /// It was served.
    Served,
    /// The service had too much to do, or did not answer.
    Overloaded,
}

impl Adaptive {
    /// A bound at its least.
    #[must_use]
    pub fn new(bound: AdaptiveBound) -> Self {
        let algorithm = match bound.algorithm {
            AdaptiveAlgorithm::Gradient => Algorithm::Gradient(Gradient::new(bound.min)),
            AdaptiveAlgorithm::Aimd { timeout } => Algorithm::Aimd(Aimd::new(bound.min, timeout)),
        };
        Self { bound, algorithm }
    }

    /// Takes an answer in that came `now`.
    pub fn observe(&mut self, now: Timestamp, sample: Sample) {
        let (min, max) = (self.bound.min, self.bound.max);
        match &mut self.algorithm {
            Algorithm::Gradient(gradient) => gradient.observe(now, sample, min, max),
            Algorithm::Aimd(aimd) => aimd.observe(now, sample, min, max),
        }
    }

    /// How many requests may be in flight.
    #[must_use]
    pub fn get(&self) -> NonZeroU32 {
        let found = match &self.algorithm {
            Algorithm::Gradient(gradient) => gradient.get(),
            Algorithm::Aimd(aimd) => aimd.get(),
        };
        NonZeroU32::new(found).unwrap_or(self.bound.min).max(self.bound.min)
    }

    /// What it was made of.
    #[must_use]
    pub const fn bound(&self) -> &AdaptiveBound {
        &self.bound
    }
}
