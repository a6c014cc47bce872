//! Two ways to try a limit on real traffic. A candidate is evaluated on the same requests and never
//! refuses. Alternatively, the limit itself is enforced only for a share of the subjects.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Algorithm, Generation, Limit};
use crate::key::{KeyedHash, Subject};
use crate::percent::Percent;
use crate::time::MAX_EXACT;

/// The prefix of the input of the hashes that select enforced subjects. With this prefix, these
/// hashes differ from the hashes of values, which use the same key.
const CHOICE: &[u8] = b"enforce";

impl Limit {
    /// Sets a candidate: a second definition that is evaluated on the same requests, has its own
    /// counters, and never refuses. A limit that an override replaces has no candidate.
    ///
    /// The candidate copies the reservation terms of this limit, and the overdraft if its algorithm
    /// allows one. Set the reservation terms before the candidate. The counters of a candidate
    /// belong to its exact definition: a changed candidate starts with empty counters and never
    /// reads those of an earlier candidate.
    #[must_use]
    pub fn with_candidate(mut self, algorithm: Algorithm) -> Self {
        let generation = Generation::of_candidate(&algorithm);
        let mut candidate =
            self.clone().without_candidate().with_algorithm(algorithm, self.reservation);
        candidate.reservation.overdraft = match algorithm {
            Algorithm::FixedWindow(_) | Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_) => {
                self.reservation.overdraft.min(MAX_EXACT - candidate.capacity())
            }
            // These algorithms have no overdraft.
            Algorithm::TwoBucket(_) | Algorithm::TokenBucket(_) | Algorithm::Concurrency(_) => 0,
        };
        self.candidate = Some(Arc::new(candidate.in_generation(Some(generation))));
        self
    }

    /// Returns the candidate of this limit, if it has one.
    #[must_use]
    pub const fn candidate(&self) -> Option<&Arc<Self>> {
        self.candidate.as_ref()
    }

    /// Sets the share of subjects for which the limit is enforced. The default is all subjects. For
    /// other subjects, the limit counts and evaluates charges, but never refuses them.
    #[must_use]
    pub const fn with_enforced(mut self, enforced: Percent) -> Self {
        self.enforced = enforced;
        self
    }

    /// Returns the share of subjects for which the limit is enforced.
    #[must_use]
    pub const fn enforced(&self) -> Percent {
        self.enforced
    }

    /// Returns whether the limit has no candidate and is enforced for every subject.
    #[must_use]
    pub fn is_enforced_alone(&self) -> bool {
        self.enforced == Percent::ALL && self.candidate.is_none()
    }

    /// Returns whether the limit is enforced for `subject`. The result is the same on every node
    /// with this `key`. A subject that is included in a percentage is also included in every larger
    /// percentage. Two limits that count the same subjects and have the same percentage are
    /// enforced for the same subjects.
    #[must_use]
    pub fn enforces(&self, subject: &Subject, key: &dyn KeyedHash) -> bool {
        if self.enforced == Percent::ALL || self.enforced == Percent::NONE {
            return self.enforced == Percent::ALL;
        }
        let bytes: Vec<u8> = [CHOICE, subject.as_bytes()].concat();
        let [half @ .., _, _, _, _, _, _, _, _] = key.hash(&bytes);
        self.enforced.includes(u64::from_be_bytes(half))
    }

    /// Removes the candidate and enforces the limit for every subject.
    pub(super) fn without_candidate(mut self) -> Self {
        (self.enforced, self.candidate) = (Percent::ALL, None);
        self
    }
}
