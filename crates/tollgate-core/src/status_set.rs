//! Sets of HTTP statuses.

use core::fmt;

/// The first and the last status that a [`StatusSet`] can contain.
pub const STATUSES: (u16, u16) = (100, 599);

/// A set of HTTP statuses from 100 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusSet([u64; Self::WORDS]);

impl StatusSet {
    const WORDS: usize = 8;
    /// The length in bytes of the result of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 8 * Self::WORDS;

    /// Adds all statuses from `first` to `last` to the set. Numbers that are not in the range
    /// [`STATUSES`] are ignored.
    #[must_use]
    pub fn with(mut self, first: u16, last: u16) -> Self {
        for status in first.max(STATUSES.0)..=last.min(STATUSES.1) {
            let (word, bit) = bit_position(status);
            self.0[word] |= bit;
        }
        self
    }

    /// Returns whether the set contains `status`.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        let (word, bit) = bit_position(status);
        (STATUSES.0..=STATUSES.1).contains(&status) && self.0[word] & bit != 0
    }

    /// Returns whether the set contains nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; Self::WORDS]
    }

    /// Returns an iterator over the statuses of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (STATUSES.0..=STATUSES.1).filter(|status| self.contains(*status))
    }

    /// Returns the set as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (part, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            part.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Returns the set that [`to_bytes`](Self::to_bytes) wrote.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let mut words = [0; Self::WORDS];
        for (word, part) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = part.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Self(words)
    }
}

/// Returns the index of the word that contains the bit of `status`, and a word in which only this
/// bit is set.
fn bit_position(status: u16) -> (usize, u64) {
    let index = usize::from(status.saturating_sub(STATUSES.0)).min(64 * StatusSet::WORDS - 1);
    (index / 64, 1 << (index % 64))
}

impl FromIterator<u16> for StatusSet {
    fn from_iter<I: IntoIterator<Item = u16>>(statuses: I) -> Self {
        statuses.into_iter().fold(Self::default(), |set, status| set.with(status, status))
    }
}

/// Writes the statuses in short form, for example `304, 401-403, 5xx`.
impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut next, mut separator) = (STATUSES.0, "");
        while let Some(first) = (next..=STATUSES.1).find(|status| self.contains(*status)) {
            let end = (first..=STATUSES.1).find(|status| !self.contains(*status));
            let mut last = end.map_or(STATUSES.1, |end| end - 1);
            f.write_str(separator)?;
            let class_end = first.saturating_add(99);
            if first % 100 == 0 && class_end <= last {
                last = class_end;
                write!(f, "{}xx", first / 100)?;
            } else if first == last {
                write!(f, "{first}")?;
            } else {
                write!(f, "{first}-{last}")?;
            }
            (next, separator) = (last + 1, ", ");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn a_set_is_written_as_statuses_ranges_and_classes() {
        let set = [304, 401, 402, 403].into_iter().collect::<StatusSet>().with(500, 599);
        assert_eq!(set.to_string(), "304, 401-403, 5xx");
        assert_eq!(StatusSet::default().with(400, 599).to_string(), "4xx, 5xx");
        assert_eq!(StatusSet::default().with(401, 599).to_string(), "401-599");
        assert_eq!(StatusSet::default().with(400, 498).to_string(), "400-498");
        assert_eq!(StatusSet::from_bytes(set.to_bytes()), set);
        assert!(set.contains(599) && !set.contains(600) && !set.contains(99));
        assert_eq!(StatusSet::default().with(0, 99).with(600, u16::MAX), StatusSet::default());
        let edges: StatusSet = [100, 599].into_iter().collect();
        assert_eq!(edges.iter().collect::<Vec<_>>(), [100, 599]);
    }
}
