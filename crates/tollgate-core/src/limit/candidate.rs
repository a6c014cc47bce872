//! A limit that is tried on real traffic: another definition beside it, or a share of its subjects.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Algorithm, Generation, Limit};
use crate::key::{KeyedHash, Subject};
use crate::percent::Percent;
use crate::time::MAX_EXACT;

/// Sets these hashes apart from those of values, which are made under the same key.
const CHOICE: &[u8] = b"enforce";

impl Limit {
    /// Sets another definition beside this one: it is judged on the same requests, counts in
    /// counters of its own, and refuses nobody. Limits that are overridden have none.
    ///
    /// It is reserved on the same terms, and overdrawn as far as its algorithm can be: set those
    /// first. The counters are of that very definition: a candidate that is changed starts afresh, and is
    /// never compared by what another one counted.
    #[must_use]
    pub fn with_candidate(mut self, algorithm: Algorithm) -> Self {
        let generation = Generation::of_candidate(&algorithm);
        let mut candidate =
            self.clone().without_candidate().with_algorithm(algorithm, self.reservation);
        candidate.reservation.overdraft = match algorithm {
            Algorithm::FixedWindow(_) | Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_) => {
                self.reservation.overdraft.min(MAX_EXACT - candidate.capacity())
            }
            // These keep no debts.
            Algorithm::TwoBucket(_) | Algorithm::TokenBucket(_) | Algorithm::Concurrency(_) => 0,
        };
        self.candidate = Some(Arc::new(candidate.in_generation(Some(generation))));
        self
    }

    /// The definition that is tried beside this one.
    #[must_use]
    pub const fn candidate(&self) -> Option<&Arc<Self>> {
        self.candidate.as_ref()
    }

    /// Sets for how many of its subjects it is enforced; for the others it is counted and judged,
    /// and refuses nobody. By default for all.
    #[must_use]
    pub const fn with_enforced(mut self, enforced: Percent) -> Self {
        self.enforced = enforced;
        self
    }

    /// For how many of its subjects it is enforced.
    #[must_use]
    pub const fn enforced(&self) -> Percent {
        self.enforced
    }

    /// Whether it is enforced for `subject`: the same on every node that holds `key`, and of a
    /// subject that it is enforced for also under every larger percentage. It does not depend on
    /// the limit: limits that count by the same subjects are enforced for the same ones.
    #[must_use]
    pub fn enforces(&self, subject: &Subject, key: &dyn KeyedHash) -> bool {
        if self.enforced == Percent::ALL || self.enforced == Percent::NONE {
            return self.enforced == Percent::ALL;
        }
        let bytes: Vec<u8> = [CHOICE, subject.as_bytes()].concat();
        let [half @ .., _, _, _, _, _, _, _, _] = key.hash(&bytes);
        self.enforced.includes(u64::from_be_bytes(half))
    }

    /// The same limit, of which nothing is tried.
    pub(super) fn without_candidate(mut self) -> Self {
        (self.enforced, self.candidate) = (Percent::ALL, None);
        self
    }
}
