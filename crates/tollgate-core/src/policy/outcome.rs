//! Charges that depend on the status of the response.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::metered::{Estimate, Meter};
use crate::cost::Cost;

/// The first and the last status that a [`StatusSet`] can contain.
pub const STATUSES: (u16, u16) = (100, 599);

/// A set of HTTP statuses from 100 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusSet([u64; Self::WORDS]);

impl StatusSet {
    const WORDS: usize = 8;
    /// The length of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 8 * Self::WORDS;

    /// Returns the set with all statuses from `first` to `last`. Numbers that are no statuses are
    /// left out.
    #[must_use]
    pub fn with(mut self, first: u16, last: u16) -> Self {
        for status in first.max(STATUSES.0)..=last.min(STATUSES.1) {
            let (word, bit) = place(status);
            self.0[word] |= bit;
        }
        self
    }

    /// Returns whether the set contains `status`.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        let (word, bit) = place(status);
        (STATUSES.0..=STATUSES.1).contains(&status) && self.0[word] & bit != 0
    }

    /// Returns whether the set contains nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; Self::WORDS]
    }

    /// Returns its statuses in ascending order.
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

/// Returns the word of a status and its bit there.
fn place(status: u16) -> (usize, u64) {
    let index = usize::from(status.saturating_sub(STATUSES.0)).min(64 * StatusSet::WORDS - 1);
    (index / 64, 1 << (index % 64))
}

impl FromIterator<u16> for StatusSet {
    fn from_iter<I: IntoIterator<Item = u16>>(statuses: I) -> Self {
        statuses.into_iter().fold(Self::default(), |set, status| set.with(status, status))
    }
}

/// Writes `304, 401-403, 5xx`.
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

/// How a charge depends on the status of the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseTerms {
    /// The statuses that the limit counts; `None` counts every response.
    pub counted: Option<Arc<StatusSet>>,
    /// The statuses for which the rule refunds the charge, instead of those of
    /// [`ResponseSettings::refund_statuses`](super::ResponseSettings::refund_statuses).
    pub refund: Option<Arc<StatusSet>>,
}

/// A part of a charge that depends on the status of the response in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalCost {
    /// The units of the part.
    pub cost: Cost,
    /// When the part is charged.
    pub terms: ResponseTerms,
}

/// What the response of a request means for its charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// All charges remain. This is also the settlement of a request without a known response.
    Charged,
    /// All charges are refunded.
    Free,
    /// The response has this status: each charge follows its [`ResponseTerms`].
    Status {
        /// The status of the response.
        status: u16,
        /// Whether charges without terms of their own are refunded.
        is_free: bool,
    },
}

impl Settlement {
    /// Returns whether a charge with these terms remains.
    #[must_use]
    pub fn keeps(self, terms: &ResponseTerms) -> bool {
        match self {
            Self::Charged => true,
            Self::Free => false,
            Self::Status { status, is_free } => {
                let is_refunded =
                    terms.refund.as_ref().map_or(is_free, |refund| refund.contains(status));
                let is_counted =
                    terms.counted.as_ref().is_none_or(|counted| counted.contains(status));
                is_counted && !is_refunded
            }
        }
    }

    /// Returns the part of `cost` that remains, with the real cost of each of `estimates` that
    /// `measured` returns, or else its reserved units.
    #[must_use]
    pub fn kept(
        self,
        cost: Cost,
        estimates: &[Estimate],
        conditions: &[ConditionalCost],
        measured: impl Fn(&Meter) -> Option<Cost>,
    ) -> Cost {
        let reserved = estimates.iter().map(|estimate| estimate.reserved);
        let parts = reserved.chain(conditions.iter().map(|part| part.cost));
        let rest = parts.fold(cost.get(), |rest, part| rest.saturating_sub(part.get()));
        let rest = if self.keeps(&ResponseTerms::default()) { rest } else { 0 };
        let kept = conditions.iter().filter(|part| self.keeps(&part.terms));
        let kept = kept.fold(Cost::up_to(rest), |kept, part| kept.plus(part.cost));
        let real = estimates.iter().filter(|estimate| self.keeps(&estimate.terms));
        real.fold(kept, |kept, estimate| {
            kept.plus(measured(&estimate.meter).unwrap_or(estimate.reserved))
        })
    }
}

/// Sets the statuses for which a rule refunds `conditions`, parts of a charge of `cost`.
pub(super) fn refund_for(
    conditions: &mut Vec<ConditionalCost>,
    cost: Cost,
    refund: &Arc<StatusSet>,
) {
    if conditions.is_empty() {
        conditions.push(ConditionalCost { cost, terms: ResponseTerms::default() });
    }
    for part in conditions {
        part.terms.refund = Some(Arc::clone(refund));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_set_is_written_as_statuses_ranges_and_classes() {
        let set = [304, 401, 402, 403].into_iter().collect::<StatusSet>().with(500, 599);
        assert_eq!(set.to_string(), "304, 401-403, 5xx");
        assert_eq!(StatusSet::default().with(400, 599).to_string(), "4xx, 5xx");
        assert_eq!(StatusSet::from_bytes(set.to_bytes()), set);
        assert!(set.contains(599) && !set.contains(600) && !set.contains(99));
        assert_eq!(StatusSet::default().with(0, 99).with(600, u16::MAX), StatusSet::default());
        let edges: StatusSet = [100, 599].into_iter().collect();
        assert_eq!(edges.iter().collect::<Vec<_>>(), [100, 599]);
    }

    #[test]
    fn each_part_of_a_cost_follows_its_own_terms() {
        let set = |status| Some(Arc::new(StatusSet::default().with(status, status)));
        let part = |cost, counted, refund| ConditionalCost {
            cost: Cost::up_to(cost),
            terms: ResponseTerms { counted, refund },
        };
        let parts = [part(2, set(401), None), part(4, None, set(304))];
        let kept = |status, is_free| {
            let settlement = Settlement::Status { status, is_free };
            settlement.kept(Cost::up_to(7), &[], &parts, |_| None).get()
        };
        // One unit has no terms of its own.
        assert_eq!(kept(401, false), 7);
        assert_eq!(kept(200, false), 5);
        assert_eq!(kept(304, false), 1);
        assert_eq!(kept(200, true), 4);
        assert_eq!(kept(401, true), 4);
        assert_eq!(Settlement::Charged.kept(Cost::up_to(7), &[], &parts, |_| None).get(), 7);
        assert_eq!(Settlement::Free.kept(Cost::up_to(7), &[], &parts, |_| None).get(), 0);
    }
}
