//! What a store answers: the plain numbers of one limit after one ask.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::slice;

use crate::charge_position::ChargePosition;
use crate::store_error::StoreError;
use crate::time::Timestamp;

/// Whether, and if not when, an ask fits. What comes to fit later is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Admission {
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
pub enum StoredState {
    /// Nothing, or what is over.
    #[default]
    Missing,
    /// State in force.
    Present,
    /// State from an impossible future, or of another kind: it counted as none.
    Discarded,
}

/// The numbers of one limit: raw, from one atomic step. What clients are told is made of them in
/// [`crate::evaluation`] and nowhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether the ask fits in this limit.
    pub admission: Admission,
    /// Whether the same ask would fit once more after this one; as `admission` where it was refused.
    pub fits_again: Admission,
    /// What is used, after the ask if it was carried out.
    pub used: u64,
    /// When nothing of it will be used any more: the end of the window.
    pub full_reset_at: Timestamp,
    /// Where a take was put, for the receipt.
    pub position: ChargePosition,
    /// Units that a refund or a settlement gave back; zero where its window is over or it was asked before.
    pub refunded: u64,
    /// Units that a settlement took beyond what was held.
    pub added: u64,
    /// Units that reservations hold and nobody has settled yet, of whatever window they are.
    pub reserved: u64,
    /// What was found.
    pub found: StoredState,
}

/// Who decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionSource {
    /// The store, or nobody because no limit applies.
    #[default]
    Store,
    /// This node by itself, which remembers until when the store refused, or knows of an override
    /// until when nobody may pass.
    DenyCache,
    /// The store, which had no room for an entry: a counter that the subject shares with some others.
    /// It admits nobody beyond the quota, and may refuse before it is reached.
    Overflow,
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
    items: Items,
    source: DecisionSource,
}

/// Small enough to be handed up by value.
#[derive(Clone, Debug, Default)]
enum Items {
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
        Self { items: Items::One(reading), source: DecisionSource::Store }
    }

    /// Appends one.
    pub fn push(&mut self, reading: Reading) {
        match &mut self.items {
            Items::None => self.items = Items::One(reading),
            Items::One(first) => self.items = Items::Many(vec![*first, reading]),
            Items::Many(readings) => readings.push(reading),
        }
    }

    /// Says who decided; the store where nothing is said.
    #[must_use]
    pub fn with_source(mut self, source: DecisionSource) -> Self {
        self.source = source;
        self
    }

    /// Who decided.
    #[must_use]
    pub const fn source(&self) -> DecisionSource {
        self.source
    }

    /// Whether every reading fits.
    #[inline]
    #[must_use]
    pub fn all_admitted(&self) -> bool {
        self.iter().all(|reading| reading.admission == Admission::Now)
    }
}

impl Deref for Readings {
    type Target = [Reading];

    #[inline]
    fn deref(&self) -> &[Reading] {
        match &self.items {
            Items::None => &[],
            Items::One(reading) => slice::from_ref(reading),
            Items::Many(readings) => readings,
        }
    }
}

impl DerefMut for Readings {
    fn deref_mut(&mut self) -> &mut [Reading] {
        match &mut self.items {
            Items::None => &mut [],
            Items::One(reading) => slice::from_mut(reading),
            Items::Many(readings) => readings,
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
        Self { items: Items::Many(all), source: DecisionSource::Store }
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
