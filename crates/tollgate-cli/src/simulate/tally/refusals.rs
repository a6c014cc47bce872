//! The times when a subject was refused. These times are combined into a few episodes, however many
//! refusals there are.

use serde::Serialize;

use super::super::utc;

/// The milliseconds without a refusal that end an episode.
const GAP: u64 = 60_000;
/// The most episodes that are kept for a subject.
const EPISODES_MAX: usize = 24;

/// A sequence of refusals of a subject. A pause of more than [`GAP`] milliseconds ends the
/// sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Episode {
    /// The first refusal, in milliseconds since the epoch.
    #[serde(serialize_with = "utc::serialize")]
    pub(crate) from: u64,
    /// The last refusal, in milliseconds since the epoch.
    #[serde(serialize_with = "utc::serialize")]
    pub(crate) to: u64,
    /// The number of refusals.
    pub(crate) count: u64,
}

/// The refusals of a subject. If there would be more than [`EPISODES_MAX`] episodes, the two
/// episodes that are closest to each other are combined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    episodes: Vec<Episode>,
}

impl Refusals {
    /// Adds a refusal. Refusals must be added in the order of their times.
    pub(super) fn add(&mut self, now: u64) {
        match self.episodes.last_mut() {
            Some(last) if now - last.to <= GAP => {
                last.to = now;
                last.count += 1;
            }
            _ => self.episodes.push(Episode { from: now, to: now, count: 1 }),
        }
        if self.episodes.len() > EPISODES_MAX {
            self.join_nearest();
        }
    }

    /// Returns the episodes in the order of their times.
    pub(crate) fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    fn join_nearest(&mut self) {
        let gap = |at: usize| self.episodes[at].from - self.episodes[at - 1].to;
        if let Some(at) = (1..self.episodes.len()).min_by_key(|at| gap(*at)) {
            let later = self.episodes.remove(at);
            self.episodes[at - 1].to = later.to;
            self.episodes[at - 1].count += later.count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_close_to_each_other_are_one_episode() {
        let mut refusals = Refusals::default();
        for now in [0, 1000, 61_000, 200_000] {
            refusals.add(now);
        }
        let expected = [
            Episode { from: 0, to: 61_000, count: 3 },
            Episode { from: 200_000, to: 200_000, count: 1 },
        ];
        assert_eq!(refusals.episodes(), expected);
    }

    #[test]
    fn episodes_are_bounded_and_lose_no_refusal() {
        let mut refusals = Refusals::default();
        for n in 0..10_000_u64 {
            refusals.add(n * n * 61_000);
        }
        assert_eq!(refusals.episodes().len(), EPISODES_MAX);
        assert_eq!(refusals.episodes().iter().map(|episode| episode.count).sum::<u64>(), 10_000);
        assert!(refusals.episodes().is_sorted_by_key(|episode| episode.from));
    }
}
