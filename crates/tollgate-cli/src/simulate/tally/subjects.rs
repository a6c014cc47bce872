//! The subjects of one limit: all of them, or the most relevant ones if there are too many.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map;

use tollgate::model::Subject;

use super::Counts;
use super::refusals::Refusals;

/// The number of subjects that a limit keeps when it drops subjects. A limit drops subjects when it
/// has twice this number.
const SUBJECTS_KEPT: usize = 50_000;

/// The results for one subject's requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubjectTally {
    pub(crate) counts: Counts,
    /// The most units that the subject had used at any point in time.
    pub(crate) peak: u64,
    /// The first client of the subject, as the log names it.
    pub(crate) client: Box<[u8]>,
    pub(crate) refusals: Refusals,
}

/// The subjects of one limit. If there are more than twice [`SUBJECTS_KEPT`], the subjects with the
/// fewest refusals and requests are dropped.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    tallies: HashMap<Subject, SubjectTally>,
    forgotten: u64,
}

impl Subjects {
    /// Returns the tally of `subject`. If `subject` has no tally yet, creates a tally with `client`
    /// as the first client of the subject.
    pub(super) fn entry(&mut self, subject: Subject, client: &[u8]) -> &mut SubjectTally {
        if self.tallies.len() >= 2 * SUBJECTS_KEPT {
            self.forget();
        }
        match self.tallies.entry(subject) {
            hash_map::Entry::Occupied(found) => found.into_mut(),
            hash_map::Entry::Vacant(new) => {
                new.insert(SubjectTally { client: client.into(), ..SubjectTally::default() })
            }
        }
    }

    /// Returns the number of subjects. A dropped subject that occurs again counts twice.
    pub(crate) fn len(&self) -> u64 {
        self.tallies.len() as u64 + self.forgotten
    }

    /// Returns the number of dropped subjects.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Returns the number of kept subjects that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.tallies.values().filter(|tally| tally.counts.refused > 0).count() as u64
    }

    /// Returns the `count` subjects with the most refusals. Among subjects with equally many
    /// refusals, subjects with more requests come first.
    pub(crate) fn top(&self, count: usize) -> Vec<(&Subject, &SubjectTally)> {
        let mut subjects: Vec<_> = self.tallies.iter().collect();
        let order = |one: &(&Subject, &SubjectTally), other: &(&Subject, &SubjectTally)| {
            rank(other.1).cmp(&rank(one.1)).then_with(|| one.0.cmp(other.0))
        };
        if count < subjects.len() {
            subjects.select_nth_unstable_by(count, order);
            subjects.truncate(count);
        }
        subjects.sort_unstable_by(order);
        subjects
    }

    fn forget(&mut self) {
        let mut ranks: Vec<_> = self.tallies.values().map(rank).collect();
        let (_, least, _) = ranks.select_nth_unstable_by_key(SUBJECTS_KEPT, |rank| Reverse(*rank));
        let least = *least;
        let before = self.tallies.len();
        self.tallies.retain(|_, tally| rank(tally) > least);
        self.forgotten += (before - self.tallies.len()) as u64;
    }
}

/// Returns the relevance of a subject: its refusals, then its requests.
pub(crate) fn rank(tally: &SubjectTally) -> (u64, u64) {
    (tally.counts.refused, tally.counts.requests)
}

#[cfg(test)]
mod tests {
    use tollgate::HashKey;
    use tollgate::model::Value;

    use super::super::RequestOutcome;
    use super::*;

    fn subject(name: &str) -> Subject {
        Subject::new([("user", Value::Clear(name.as_bytes()))], &HashKey::from_secret(b"test"))
    }

    #[test]
    fn the_most_refused_come_first_and_then_the_busiest() {
        let mut subjects = Subjects::default();
        for (name, fates) in [
            ("calm", &[RequestOutcome::Admitted][..]),
            ("busy", &[RequestOutcome::Admitted; 9]),
            ("hit", &[RequestOutcome::Admitted, RequestOutcome::Refused]),
            ("hit harder", &[RequestOutcome::Refused, RequestOutcome::Refused]),
        ] {
            for outcome in fates {
                subjects.entry(subject(name), b"").counts.add(*outcome);
            }
        }
        let names = |count| {
            subjects.top(count).iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(2), ["user=hit harder", "user=hit"]);
        assert_eq!(names(9), ["user=hit harder", "user=hit", "user=busy", "user=calm"]);
        assert_eq!((subjects.len(), subjects.refused()), (4, 2));
    }

    #[test]
    fn subjects_are_bounded_and_the_refused_stay() {
        let mut subjects = Subjects::default();
        subjects.entry(subject("refused"), b"").counts.add(RequestOutcome::Refused);
        for n in 0..5 * SUBJECTS_KEPT {
            subjects.entry(subject(&n.to_string()), b"").counts.add(RequestOutcome::Admitted);
            assert!(subjects.tallies.len() <= 2 * SUBJECTS_KEPT);
        }
        assert_eq!(subjects.top(1)[0].0, &subject("refused"));
        assert_eq!(subjects.len(), 5 * SUBJECTS_KEPT as u64 + 1);
        assert!(subjects.forgotten() > 0);
    }
}
