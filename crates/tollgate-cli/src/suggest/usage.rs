//! Counts the requests of every subject in every window.

use std::collections::{BTreeMap, HashMap};

use tollgate::model::Subject;

use super::curve::Curve;

/// The most subjects that are counted. With windows of two lengths, this number of subjects takes
/// about 300 MB.
const MAX_SUBJECTS: usize = 2_000_000;

/// The current window of a subject, for windows of one length. As for a limit, a window opens with
/// the subject's first request after the previous window has ended. Therefore the windows do not
/// depend on the quota.
#[derive(Clone, Copy, Debug, Default)]
struct OpenWindow {
    ends_at: u64,
    requests: u64,
    /// The most requests that the subject had in one window so far.
    peak: u64,
}

/// Counts of requests by subject and window.
#[derive(Debug)]
pub(super) struct Usage {
    lengths: Vec<u64>,
    subjects: HashMap<Subject, Box<[OpenWindow]>>,
    /// One map for each length of windows. A map contains, for each count of requests, the number
    /// of ended windows with this count.
    ended: Vec<BTreeMap<u64, u64>>,
    requests: u64,
    uncounted: u64,
}

impl Usage {
    /// Counts windows of these `lengths`, in milliseconds.
    pub(super) fn new(lengths: Vec<u64>) -> Self {
        let ended = vec![BTreeMap::new(); lengths.len()];
        Self { lengths, subjects: HashMap::new(), ended, requests: 0, uncounted: 0 }
    }

    /// Counts a request of `subject` at `time`. `time` must not be before the time of the previous
    /// request.
    pub(super) fn count(&mut self, subject: Subject, time: u64) {
        if self.subjects.len() >= MAX_SUBJECTS && !self.subjects.contains_key(&subject) {
            self.uncounted += 1;
            return;
        }
        self.requests += 1;
        let none = || vec![OpenWindow::default(); self.lengths.len()].into_boxed_slice();
        let windows = self.subjects.entry(subject).or_insert_with(none);
        for ((window, length), ended) in windows.iter_mut().zip(&self.lengths).zip(&mut self.ended)
        {
            if time >= window.ends_at {
                if window.requests > 0 {
                    *ended.entry(window.requests).or_default() += 1;
                }
                *window = OpenWindow { ends_at: time + length, requests: 0, ..*window };
            }
            window.requests += 1;
            window.peak = window.peak.max(window.requests);
        }
    }

    /// Returns the number of subjects.
    pub(super) fn subjects(&self) -> u64 {
        self.subjects.len() as u64
    }

    /// Returns the number of requests that were counted.
    pub(super) const fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the number of requests that were not counted, because there were too many subjects.
    pub(super) const fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// Returns one curve for each length, in the order of the lengths.
    pub(super) fn curves(self) -> Vec<Curve> {
        let mut peaks = vec![BTreeMap::<u64, u64>::new(); self.lengths.len()];
        let mut windows = self.ended;
        for open in self.subjects.values() {
            for ((window, peaks), windows) in open.iter().zip(&mut peaks).zip(&mut windows) {
                *peaks.entry(window.peak).or_default() += 1;
                *windows.entry(window.requests).or_default() += 1;
            }
        }
        peaks.into_iter().zip(windows).map(|(peaks, windows)| Curve::new(peaks, windows)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate::model::algo::{Anchor, FixedWindow};
    use tollgate::model::{
        Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Timestamp, Value,
    };
    use tollgate::store::Memory;

    use super::*;

    fn subject(number: u8) -> Subject {
        Subject::new([("user", Value::Clear(&[number]))], &tollgate::HashKey::random())
    }

    proptest! {
        /// The refusals by a curve equal the refusals of a fixed window with the same quota to
        /// which each request is sent.
        #[test]
        fn a_curve_tells_what_a_limit_refuses(
            steps in prop::collection::vec((0_u8..4, 0_u64..30), 1..200),
            length in 1_u64..100,
            quota in 1_u64..12,
        ) {
            let window = FixedWindow::new(quota, Millis::new(length), Anchor::FirstRequest).unwrap();
            let limit = Limit::new("all", Algorithm::FixedWindow(window)).unwrap();
            let (store, mut usage, mut now) = (Memory::default(), Usage::new(vec![length]), 1_000);
            let (mut refused, mut hit) = (0, std::collections::BTreeSet::new());
            for (number, later) in steps {
                now += later;
                usage.count(subject(number), now);
                let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
                let charge = Charge { limit: &limit, subject: &subject(number), operation };
                let readings = store.apply_now(Timestamp::from_millis(now), &[charge]).unwrap();
                if !readings.all_admitted() {
                    refused += 1;
                    hit.insert(number);
                }
            }
            let curve = usage.curves().remove(0);
            prop_assert_eq!(curve.requests_refused(quota), refused);
            prop_assert_eq!(curve.subjects_refused(quota), hit.len() as u64);
        }
    }
}
