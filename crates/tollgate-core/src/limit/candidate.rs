//! Trials of a limit on real traffic: a candidate, which is evaluated and never refuses, or
//! enforcement for a share of the subjects.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Algorithm, Generation, Limit};
use crate::key::{KeyedHash, Subject};
use crate::percent::Percent;
use crate::time::MAX_EXACT;

/// The prefix of the input of the hashes that select enforced subjects. It separates these hashes
/// from the hashes of values, which use the same key.
const CHOICE: &[u8] = b"enforce";

impl Limit {
    /// Sets a candidate: a second definition that is evaluated on the same requests, has its own
    /// counters, and never refuses. A limit that an override replaces has no candidate.
    ///
    /// The candidate copies the reservation terms, and the overdraft if its algorithm allows one,
    /// so set the terms before the candidate. Its counters belong to its exact definition. A
    /// changed candidate starts with empty counters and is never compared by the counters of an
    /// earlier candidate.
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

    /// Returns the candidate of this limit.
    #[must_use]
    pub const fn candidate(&self) -> Option<&Arc<Self>> {
        self.candidate.as_ref()
    }

    /// Sets the share of subjects for which the limit is enforced. The default is all subjects. For
    /// the other subjects the limit is counted and evaluated and never refuses.
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

    /// Returns whether the limit is enforced for every subject and has no candidate.
    #[must_use]
    pub fn is_enforced_alone(&self) -> bool {
        self.enforced == Percent::ALL && self.candidate.is_none()
    }

    /// Returns whether the limit is enforced for `subject`. The result is the same on every node
    /// with this `key`, and a subject that is included stays included under every larger
    /// percentage. The result does not depend on the limit: two limits that count the same subjects
    /// and have the same percentage are enforced for the same subjects.
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
