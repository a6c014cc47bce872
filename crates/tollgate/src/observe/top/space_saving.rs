//! A sketch of the heaviest subjects in a stream that is too long to count exactly.

use tollgate_core::Subject;

/// The most subjects in one sketch.
pub(super) const COUNTERS: usize = 32;

/// The Space-Saving sketch of Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent
/// and Top-k Elements in Data Streams" (ICDT 2005), with weights.
///
/// The sketch contains every subject whose weight is more than a 32nd of the total weight
/// ([`COUNTERS`] is 32). A subject's true weight is at most the reported weight, and at least the
/// reported weight minus the reported error. The reported error is at most a 32nd of the total
/// weight.
#[derive(Debug, Default)]
pub(super) struct SpaceSaving {
    /// The hashes of the subjects, separate from the entries, so a lookup reads few cache lines.
    hashes: Vec<u64>,
    entries: Vec<WeightedSubject>,
    /// The least weight that the last search for the lightest entry found, and the index at which
    /// this search stopped. No entry before this index has so little weight, because weights only
    /// grow.
    least: u64,
    hand: usize,
}

/// A subject with its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WeightedSubject {
    pub(super) subject: Subject,
    pub(super) units: u64,
    pub(super) error: u64,
}

impl SpaceSaving {
    /// Adds `units` to the weight of `subject`, whose hash is `hash`.
    pub(super) fn add(&mut self, hash: u64, subject: &Subject, units: u64) {
        if let Some(index) = self.find(hash, subject) {
            let entry = &mut self.entries[index];
            entry.units = entry.units.saturating_add(units);
        } else if self.entries.len() < COUNTERS {
            self.hashes.push(hash);
            self.entries.push(WeightedSubject { subject: subject.clone(), units, error: 0 });
        } else {
            let index = self.lightest();
            self.hashes[index] = hash;
            let entry = &mut self.entries[index];
            entry.subject.clone_from(subject);
            entry.error = entry.units;
            entry.units = entry.units.saturating_add(units);
        }
    }

    /// Returns the weight of each subject in the sketch, in no particular order.
    pub(super) fn entries(&self) -> &[WeightedSubject] {
        &self.entries
    }

    /// Returns the upper bound of the weight of a subject that is not in the sketch.
    pub(super) fn untracked_weight(&self) -> u64 {
        if self.entries.len() < COUNTERS { 0 } else { self.least() }
    }

    /// Removes all subjects, and keeps the allocation.
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.entries.clear();
        (self.least, self.hand) = (0, 0);
    }

    fn find(&self, hash: u64, subject: &Subject) -> Option<usize> {
        let places = self.hashes.iter().enumerate().filter(|(_, other)| **other == hash);
        places.map(|(index, _)| index).find(|index| self.entries[*index].subject == *subject)
    }

    /// Returns the index of an entry with the least weight. The search continues at the entry that
    /// the last search found. If many subjects of the stream occur only once, many entries have the
    /// least weight, and the search soon finds one. Only about one call in [`COUNTERS`] then
    /// searches all entries.
    fn lightest(&mut self) -> usize {
        let least = self.least;
        let is_lightest = |entry: &WeightedSubject| entry.units == least;
        if let Some(ahead) = self.entries[self.hand..].iter().position(is_lightest) {
            self.hand += ahead;
            return self.hand;
        }
        let least = self.least();
        self.least = least;
        self.hand = self.entries.iter().position(|entry| entry.units == least).unwrap_or_default();
        self.hand
    }

    fn least(&self) -> u64 {
        self.entries.iter().map(|entry| entry.units).min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tollgate_core::Value;

    use super::*;
    use crate::HashKey;

    fn subject(number: u64) -> Subject {
        let name = number.to_string();
        Subject::new([("user", Value::Clear(name.as_bytes()))], &HashKey::from_secret(b"k"))
    }

    #[test]
    fn what_is_reported_lies_between_its_bounds_for_every_subject() {
        let (mut sketch, mut exact, mut all) = (SpaceSaving::default(), HashMap::new(), 0);
        let mut state = 7_u64;
        for step in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step | 1);
            // A few subjects are heavy. Most subjects occur once.
            let number = if state >> 61 < 3 { state >> 62 } else { 100 + (state >> 40) };
            let units = 1 + (state >> 20) % 5;
            sketch.add(number, &subject(number), units);
            *exact.entry(number).or_insert(0) += units;
            all += units;
        }
        let held: HashMap<_, _> =
            sketch.entries().iter().map(|entry| (entry.subject.clone(), entry)).collect();
        assert_eq!(held.len(), COUNTERS);
        assert!(sketch.untracked_weight() <= all / COUNTERS as u64);
        for (number, exact) in exact {
            match held.get(&subject(number)) {
                Some(entry) => {
                    assert!(exact <= entry.units && entry.units - entry.error <= exact);
                    assert!(entry.error <= all / COUNTERS as u64);
                }
                None => assert!(exact <= sketch.untracked_weight(), "{number} weighs {exact}"),
            }
        }
    }

    #[test]
    fn who_comes_last_takes_the_place_of_a_lightest() {
        let mut sketch = SpaceSaving::default();
        let mut state = 11_u64;
        for step in 0..10_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step | 1);
            let (number, units) = (state >> 50, 1 + (state >> 30) % 3);
            let least = sketch.least();
            let is_held = sketch.hashes.contains(&number) || sketch.entries.len() < COUNTERS;
            sketch.add(number, &subject(number), units);
            let entry = sketch.entries.iter().find(|entry| entry.subject == subject(number));
            let entry = entry.expect("who was added is held");
            assert!(is_held || (entry.error, entry.units) == (least, least + units));
        }
    }

    #[test]
    fn subjects_whose_hashes_meet_are_distinguished() {
        let mut sketch = SpaceSaving::default();
        sketch.add(1, &subject(1), 2);
        sketch.add(1, &subject(2), 3);
        sketch.add(1, &subject(1), 2);
        let units: Vec<_> = sketch.entries().iter().map(|entry| entry.units).collect();
        assert_eq!(units, [4, 3]);
        sketch.clear();
        assert!(sketch.entries().is_empty() && sketch.untracked_weight() == 0);
    }
}
