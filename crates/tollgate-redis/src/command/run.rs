//! Runs: consecutive jobs with one charge per job that are encoded under one header. Most commands
//! consist of such jobs.

use tollgate_core::Timestamp;

use super::{push_index, push_number};

/// Consecutive jobs with one charge per job. All jobs of a run have the same limit, cost and time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) now: Timestamp,
    /// The index, in the command, of the limit that the jobs charge.
    pub(super) rule: usize,
    pub(super) cost: u64,
    /// The index, in the command, of the key that the first job charges.
    pub(super) key: usize,
    pub(super) jobs: usize,
    pub(super) keys: Keys,
}

/// The keys that the jobs of a run charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Each job charges the key with the index that follows the index of the previous job's key.
    Consecutive,
    /// Every job charges the first key.
    Same,
}

impl Run {
    const TAKE_EACH: u8 = 9;
    const TAKE_REPEATEDLY: u8 = 10;

    /// Appends `next`, a run of one job, to this run, if that is possible. Returns whether `next`
    /// was appended.
    pub(super) fn join(&mut self, next: &Self) -> bool {
        if (self.now, self.rule, self.cost) != (next.now, next.rule, next.cost) {
            return false;
        }
        let is_lone = self.jobs == 1;
        if next.key == self.key && (is_lone || self.keys == Keys::Same) {
            self.keys = Keys::Same;
        } else if next.key != self.key + self.jobs || !(is_lone || self.keys == Keys::Consecutive) {
            return false;
        }
        self.jobs += 1;
        true
    }

    pub(super) fn push(&self, out: &mut Vec<u8>) {
        push_number(out, self.now.as_millis());
        push_index(out, self.jobs);
        out.push(match self.keys {
            Keys::Consecutive => Self::TAKE_EACH,
            Keys::Same => Self::TAKE_REPEATEDLY,
        });
        push_index(out, self.rule);
        push_index(out, self.key);
        push_number(out, self.cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(key: usize) -> Run {
        let now = Timestamp::from_millis(5);
        Run { now, rule: 1, cost: 2, key, jobs: 1, keys: Keys::Consecutive }
    }

    /// Groups jobs on the keys with these indexes into runs. Returns, for each run, the first key,
    /// the number of jobs, and whether the keys are consecutive or the same.
    fn runs(keys: &[usize]) -> Vec<(usize, usize, Keys)> {
        let mut runs: Vec<Run> = Vec::new();
        for key in keys {
            if !runs.last_mut().is_some_and(|run| run.join(&single(*key))) {
                runs.push(single(*key));
            }
        }
        runs.iter().map(|run| (run.key, run.jobs, run.keys)).collect()
    }

    #[test]
    fn keys_that_follow_each_other_make_a_run_and_so_does_one_key() {
        assert_eq!(runs(&[4, 5, 6]), [(4, 3, Keys::Consecutive)]);
        assert_eq!(runs(&[4, 4, 4]), [(4, 3, Keys::Same)]);
        let mixed = [(4, 2, Keys::Consecutive), (5, 1, Keys::Consecutive), (4, 2, Keys::Same)];
        assert_eq!(runs(&[4, 5, 5, 4, 4]), mixed);
        assert_eq!(runs(&[4, 4, 5]), [(4, 2, Keys::Same), (5, 1, Keys::Consecutive)]);
        // The second run does not join the first run, because the jobs of the first charge one key
        // repeatedly.
        assert_eq!(runs(&[4, 4, 6]), [(4, 2, Keys::Same), (6, 1, Keys::Consecutive)]);
    }

    #[test]
    fn another_moment_limit_or_cost_begins_another_run() {
        let next = single(2);
        for other in [
            Run { now: Timestamp::from_millis(6), ..next },
            Run { rule: 2, ..next },
            Run { cost: 3, ..next },
        ] {
            assert!(!single(1).join(&other));
        }
        assert!(single(1).join(&next));
    }
}
