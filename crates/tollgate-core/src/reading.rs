//! What a store answers: the plain numbers of one limit after one ask.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::slice;

use crate::mark::Mark;
use crate::store_error::StoreError;
use crate::time::Timestamp;

/// Whether, and if not when, an ask fits. What comes to fit later is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It fits now.
    #[default]
    Now,
    /// It does not, and will at this moment if nobody else charges: not a millisecond earlier.
    At(Timestamp),
    /// It never will: it costs more than the limit can ever hold.
    Never,
}

/// What was found where the state should be.
///
/// As wide as every other number of a [`Reading`], which then is copied whole words at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum Found {
    /// Nothing, or what is over.
    #[default]
    Nothing,
    /// State in force.
    State,
    /// State from an impossible future, or of another kind: it counted as none.
    Discarded,
}

/// The numbers of one limit: raw, from one atomic step. What clients are told is made of them in
/// [`crate::verdict`] and nowhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether the ask fits in this limit.
    pub fit: Fit,
    /// Whether the same ask would fit once more after this one; as `fit` where it was refused.
    pub again: Fit,
    /// What is used, after the ask if it was carried out.
    pub used: u64,
    /// When nothing of it will be used any more: the end of the window.
    pub whole_at: Timestamp,
    /// Where a take was put, for the receipt.
    pub mark: Mark,
    /// Units that a refund or a settlement gave back; zero where its window is over or it was asked before.
    pub given_back: u64,
    /// Units that a settlement took beyond what was held.
    pub added: u64,
    /// Units that reservations hold and nobody has settled yet, of whatever window they are.
    pub held: u64,
    /// What was found.
    pub found: Found,
}

/// Who decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The store, or nobody because no limit applies.
    #[default]
    Store,
    /// This node by itself, which remembers until when the store refused, or knows of an override
    /// until when nobody may pass.
    Remembered,
    /// What stands in for the store, which had no answer for this reason.
    Fallback(StoreError),
    /// The policy's word for when nothing has an answer; there are no readings then.
    Failure(StoreError),
}

/// The readings of one call, in the order of its charges.
///
/// The one of a call with one charge, the most frequent by far, is kept in place.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    held: Held,
    source: Source,
}

/// Small enough to be handed up by value.
#[derive(Clone, Debug, Default)]
enum Held {
    #[default]
    None,
    One(Reading),
    Many(Vec<Reading>),
}

impl Readings {
    /// No readings yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The reading of a call with one charge.
    #[inline]
    #[must_use]
    pub fn one(reading: Reading) -> Self {
        Self { held: Held::One(reading), source: Source::Store }
    }

    /// Appends one.
    pub fn push(&mut self, reading: Reading) {
        match &mut self.held {
            Held::None => self.held = Held::One(reading),
            Held::One(first) => self.held = Held::Many(vec![*first, reading]),
            Held::Many(readings) => readings.push(reading),
        }
    }

    /// Says who decided; the store where nothing is said.
    #[must_use]
    pub fn with_source(mut self, source: Source) -> Self {
        self.source = source;
        self
    }

    /// Who decided.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Whether every reading fits.
    #[inline]
    #[must_use]
    pub fn all_fit(&self) -> bool {
        self.iter().all(|reading| reading.fit == Fit::Now)
    }
}

impl Deref for Readings {
    type Target = [Reading];

    #[inline]
    fn deref(&self) -> &[Reading] {
        match &self.held {
            Held::None => &[],
            Held::One(reading) => slice::from_ref(reading),
            Held::Many(readings) => readings,
        }
    }
}

impl DerefMut for Readings {
    fn deref_mut(&mut self) -> &mut [Reading] {
        match &mut self.held {
            Held::None => &mut [],
            Held::One(reading) => slice::from_mut(reading),
            Held::Many(readings) => readings,
        }
    }
}

impl FromIterator<Reading> for Readings {
    fn from_iter<I: IntoIterator<Item = Reading>>(readings: I) -> Self {
        let mut readings = readings.into_iter();
        let Some(first) = readings.next() else { return Self::new() };
        let Some(second) = readings.next() else { return Self::one(first) };
        let mut all = Vec::with_capacity(2 + readings.size_hint().0);
        all.extend([first, second]);
        all.extend(readings);
        Self { held: Held::Many(all), source: Source::Store }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_keep_their_order_however_many_there_are() {
        for count in 0..12_u64 {
            let all: Readings =
                (0..count).map(|used| Reading { used, ..Reading::default() }).collect();
            assert_eq!(all.len() as u64, count);
            assert!(all.iter().zip(0..).all(|(reading, used)| reading.used == used));
            let mut pushed = Readings::new();
            all.iter().for_each(|reading| pushed.push(*reading));
            assert_eq!(*pushed, *all);
        }
    }
}
