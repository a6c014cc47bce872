//! The refusals that each quota would cause in windows of one length.

use std::collections::BTreeMap;

use super::share::RefusedShare;

/// The counts of all windows of one length.
#[derive(Debug)]
pub(crate) struct Curve {
    /// The number of subjects for each count of requests. The count of a subject is the number of
    /// its requests in its busiest window.
    peaks: BTreeMap<u64, u64>,
    /// The number of windows for each count of requests. The count of a window is the number of
    /// requests in this window.
    windows: BTreeMap<u64, u64>,
}

impl Curve {
    /// Creates a curve from the counts of subjects and the counts of windows.
    pub(super) const fn new(peaks: BTreeMap<u64, u64>, windows: BTreeMap<u64, u64>) -> Self {
        Self { peaks, windows }
    }

    /// Returns the most requests of one subject in one window.
    pub(crate) fn peak(&self) -> u64 {
        self.peaks.last_key_value().map_or(0, |(peak, _)| *peak)
    }

    /// Returns the number of subjects that a limit of `quota` refuses at least once.
    pub(crate) fn subjects_refused(&self, quota: u64) -> u64 {
        self.peaks.range(quota + 1..).map(|(_, subjects)| subjects).sum()
    }

    /// Returns the number of requests that a limit of `quota` refuses.
    pub(crate) fn requests_refused(&self, quota: u64) -> u64 {
        let beyond = self.windows.range(quota + 1..);
        beyond.map(|(requests, windows)| (requests - quota) * windows).sum()
    }

    /// Returns the smallest quota that refuses at most the share `subjects` of all subjects at
    /// least once, and at most the share `requests` of all requests. The quota is rounded up to a
    /// [round number](rounded_up).
    pub(crate) fn quota_for(&self, subjects: RefusedShare, requests: RefusedShare) -> u64 {
        let all_subjects: u64 = self.peaks.values().sum();
        let all_requests: u64 =
            self.windows.iter().map(|(requests, windows)| requests * windows).sum();
        let fits = |quota: u64| {
            subjects.allows(self.subjects_refused(quota), all_subjects)
                && requests.allows(self.requests_refused(quota), all_requests)
        };
        // A larger quota never refuses more.
        let (mut least, mut most) = (1, self.peak().max(1));
        while least < most {
            let middle = least + (most - least) / 2;
            if fits(middle) {
                most = middle;
            } else {
                least = middle + 1;
            }
        }
        rounded_up(least)
    }
}

/// The first digits of round numbers.
const STEPS: [u64; 9] = [10, 12, 15, 20, 25, 30, 40, 50, 60];

/// Returns the smallest round number that is not below `number`. Round numbers are the numbers up
/// to 10, then 12, 15, 20, 25, 30, 40, 50, 60, 80, and these numbers followed by zeros.
pub(super) fn rounded_up(number: u64) -> u64 {
    if number <= 10 {
        return number;
    }
    let mut scale = 1_u64;
    loop {
        let steps = STEPS.iter().chain(&[80]);
        if let Some(round) =
            steps.map(|step| step.saturating_mul(scale)).find(|step| *step >= number)
        {
            return round;
        }
        scale = scale.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_up_to_what_people_write() {
        for (number, round) in [
            (1, 1),
            (7, 7),
            (10, 10),
            (11, 12),
            (13, 15),
            (61, 80),
            (81, 100),
            (101, 120),
            (999, 1_000),
            (6_001, 8_000),
        ] {
            assert_eq!(rounded_up(number), round, "{number}");
        }
        for number in 1..20_000 {
            let round = rounded_up(number);
            assert!(number <= round && round <= number.max(4) * 4 / 3, "{number}: {round}");
        }
    }

    #[test]
    fn the_quota_is_the_smallest_for_both_shares() {
        // There are a hundred subjects, each with one window. The windows have 1, 2, … 100
        // requests.
        let all: BTreeMap<u64, u64> = (1..=100).map(|requests| (requests, 1)).collect();
        let curve = Curve::new(all.clone(), all);
        let share = |text: &str| text.parse().unwrap();
        assert_eq!(curve.subjects_refused(90), 10);
        assert_eq!(curve.requests_refused(98), 3);
        assert_eq!(curve.quota_for(share("50%"), RefusedShare::ALL), 50);
        assert_eq!(curve.quota_for(share("49%"), RefusedShare::ALL), 60);
        assert_eq!(curve.quota_for(share("0%"), share("0%")), 100);
        // Of 5,050 requests a quota of 90 refuses 55, which is more than 1 %; a quota of 91 refuses
        // 45.
        assert_eq!(curve.quota_for(RefusedShare::ALL, share("1%")), 100);
        assert_eq!(
            Curve::new(BTreeMap::new(), BTreeMap::new()).quota_for(share("1%"), share("1%")),
            1
        );
    }
}
