//! The readings that a store returns: the numbers of each limit after one operation, before they
//! are converted to a status.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::slice;

use crate::charge_position::ChargePosition;
use crate::store_error::StoreError;
use crate::time::Timestamp;

/// Whether an operation fits now, at a later time, or never. Values are ordered: a later time is
/// greater, and `Never` is the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Admission {
    /// The operation fits now.
    #[default]
    Now,
    /// The operation fits at this time if no other charge is made, and not a millisecond earlier.
    At(Timestamp),
    /// The operation never fits: its cost exceeds the limit's capacity.
    Never,
}

/// Whether an operation found stored state, and whether it could use that state.
///
/// The enum has the same size as the numbers of a [`Reading`], which lets the compiler copy a
/// reading in whole machine words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum StoredState {
    /// The operation found no state, or expired state.
    #[default]
    Missing,
    /// The operation found valid state.
    Present,
    /// The operation found state from too far in the future, or state of another algorithm. Such
    /// state is treated as missing.
    Discarded,
}

/// The result of one operation on one limit, which a store reads in one atomic step. Only
/// [`crate::evaluation`] converts the numbers of a reading to the status that clients receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether the operation fits in this limit. If it does not, the time at which it will fit.
    pub admission: Admission,
    /// Whether the same operation would fit a second time after this one. If it would not, the time
    /// at which it will fit. The value equals `admission` if the operation was refused.
    pub fits_again: Admission,
    /// The units in use. If the operation was executed, the units after the operation.
    pub used: u64,
    /// The time at which all of the used units are free again, such as the end of the window.
    pub full_reset_at: Timestamp,
    /// The position at which a charge was counted, for the receipt.
    pub position: ChargePosition,
    /// The units that a refund or a settlement returned. The number is zero if the window is over
    /// or the operation is a repetition.
    pub refunded: u64,
    /// The units that a settlement charged beyond the reserved units.
    pub added: u64,
    /// The units of all unsettled reservations, whichever window they belong to.
    pub reserved: u64,
    /// Whether the operation found stored state, and whether it could use that state.
    pub found: StoredState,
}

/// The component that made a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionSource {
    /// The store made the decision. If no limit applies, no component decides, and this variant is
    /// used too.
    #[default]
    Store,
    /// This node made the decision without a store call. Its deny cache has a refusal of the store
    /// that is still valid, or an override refuses every request until a known time.
    DenyCache,
    /// The store made the decision by an overflow counter, which the subject shares with other
    /// subjects, because the store had no room for a counter of the subject's own. An overflow
    /// counter never admits more than the quota, but it can refuse requests of a subject that has
    /// not used its quota.
    Overflow,
    /// The fallback made the decision, because the store did not answer. The value is the reason.
    Fallback(StoreError),
    /// The policy's `on_failure` setting made the decision, because neither the store nor a local
    /// fallback answered. The value is the reason. A decision from this source has no readings.
    Failure(StoreError),
}

/// The readings of one call, in the order of its charges.
///
/// The reading of a call with one charge, by far the most frequent case, is stored inline.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    items: Items,
    source: DecisionSource,
}

/// The readings of a call: one reading that is stored inline, or a list.
#[derive(Clone, Debug, Default)]
enum Items {
    #[default]
    None,
    One(Reading),
    Many(Vec<Reading>),
}

impl Readings {
    /// Creates an empty list of readings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the readings of a call with one charge.
    #[inline]
    #[must_use]
    pub fn one(reading: Reading) -> Self {
        Self { items: Items::One(reading), source: DecisionSource::Store }
    }

    /// Appends a reading.
    pub fn push(&mut self, reading: Reading) {
        match &mut self.items {
            Items::None => self.items = Items::One(reading),
            Items::One(first) => self.items = Items::Many(vec![*first, reading]),
            Items::Many(readings) => readings.push(reading),
        }
    }

    /// Sets the component that decided. The default is the store.
    #[must_use]
    pub fn with_source(mut self, source: DecisionSource) -> Self {
        self.source = source;
        self
    }

    /// Returns the component that decided.
    #[must_use]
    pub const fn source(&self) -> DecisionSource {
        self.source
    }

    /// Returns whether every reading's admission is [`Now`](Admission::Now).
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

impl From<Vec<Reading>> for Readings {
    fn from(readings: Vec<Reading>) -> Self {
        let items = match &*readings {
            [] => Items::None,
            [reading] => Items::One(*reading),
            _ => Items::Many(readings),
        };
        Self { items, source: DecisionSource::Store }
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
