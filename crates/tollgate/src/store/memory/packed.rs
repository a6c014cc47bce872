//! One entry of the table, encoded in two words: the state, the time at which the state expires,
//! and the retention.
//!
//! Every number that a decision needs is below 2^53, so eleven bits of each word are free. These
//! bits contain the type of the entry, whether the entry may be dropped to make room, the number of
//! the limit's share of the store, and, for a token bucket, an estimate of the time until the
//! bucket is full.

use std::num::NonZeroU64;

use tollgate_core::algo::{fixed_window, token_bucket};
use tollgate_core::decide::Plain;
use tollgate_core::{MAX_EXACT, Millis, Timestamp};

use super::lifetime;

/// Whether an entry may be dropped to make room for another entry. When an entry is dropped, the
/// overflow counter of its subject raises its [`Ceiling`](super::overflow::Ceiling) to at least the
/// usage of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retention {
    /// The limit has units left for the subject. Entries with this retention are dropped first.
    Evictable,
    /// The subject has used up the limit. The entry is dropped only to make room for a subject of
    /// another limit, and only while that other limit has less than its guaranteed share. The
    /// reason is that dropping the entry raises the ceiling of an overflow counter to the quota.
    /// The counter then refuses all of its subjects that have no entry.
    AtLimit,
    /// Units are in flight or reserved, or a refund is remembered. The entry is never dropped to
    /// make room.
    Pinned,
}

/// The content of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The entry contains the state.
    Plain(Plain),
    /// The state is larger than two words. The number is its index among the [`Cells`].
    ///
    /// [`Cells`]: super::cells::Cells
    Large(usize),
    /// A record that a charge was refunded.
    Refunded,
}

/// [`Content`] with the time at which it expires and its [`Retention`]. `Option<Packed>` has the
/// same size as `Packed`: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    head: NonZeroU64,
    tail: u64,
}

const NUMBER_BITS: u32 = 53;
const TAG_SHIFT: u32 = 61;
const PROTECTED: u64 = 1 << 60;
/// The number of bits of `head` between the 53-bit number and [`PROTECTED`]. These bits contain the
/// low bits of an encoded [`lifetime`].
const SPARE_BITS: u32 = 7;
/// The number of bits of `tail` that contain the high bits of the encoded lifetime. The low bits
/// are in `head`.
const LATE_BITS: u32 = lifetime::BITS - SPARE_BITS;
/// The index of the lowest bit of the share's number in `tail`. The bits below contain the 53-bit
/// number and a part of the encoded lifetime.
const SHARE_SHIFT: u32 = NUMBER_BITS + LATE_BITS;
const SHARE: u64 = !0 << SHARE_SHIFT;

const FIXED_WINDOW: NonZeroU64 = tag(1);
const TOKEN_BUCKET: NonZeroU64 = tag(2);
const LARGE: NonZeroU64 = tag(3);
const REFUNDED: NonZeroU64 = tag(4);
const PINNED: NonZeroU64 = tag(5);
const TAG: u64 = !0 << TAG_SHIFT;

/// Returns the bits of `head` that contain the tag `number`, which states the type of the entry. No
/// tag is zero, so no `head` is zero.
const fn tag(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number << TAG_SHIFT).unwrap()
}

impl Packed {
    /// Creates an entry that contains `state` and expires at `expires_at`.
    #[inline]
    pub(super) fn plain(state: Plain, expires_at: Timestamp, retention: Retention) -> Self {
        match state {
            Plain::FixedWindow(state) => {
                let resets_at = state.resets_at.as_millis();
                Self::of(FIXED_WINDOW, state.used, resets_at, retention)
            }
            Plain::TokenBucket(state) => {
                let lifetime = lifetime::encode(expires_at.since(state.at));
                let spare = (lifetime & ((1 << SPARE_BITS) - 1)) << NUMBER_BITS;
                let tail = state.at.as_millis() | (lifetime >> SPARE_BITS) << NUMBER_BITS;
                Self::of(TOKEN_BUCKET, state.level | spare, tail, retention)
            }
        }
    }

    /// Creates an entry with its large state at `index` among the [`Cells`](super::cells::Cells).
    pub(super) fn large(index: usize, expires_at: Timestamp, retention: Retention) -> Self {
        let tag = if retention == Retention::Pinned { PINNED } else { LARGE };
        Self::of(tag, index as u64, expires_at.as_millis(), retention)
    }

    /// Creates a record that a charge was refunded. The record is needed until `expires_at`.
    pub(super) fn refunded(expires_at: Timestamp) -> Self {
        Self::of(REFUNDED, 0, expires_at.as_millis(), Retention::Pinned)
    }

    /// Returns this entry, changed to count in the share with the number `share`.
    #[inline]
    pub(super) const fn in_share(self, share: u8) -> Self {
        Self { tail: self.tail & !SHARE | (share as u64) << SHARE_SHIFT, ..self }
    }

    /// Returns this entry, changed to count in the share in which `other` counts.
    #[inline]
    pub(super) const fn in_share_of(self, other: Self) -> Self {
        Self { tail: self.tail & !SHARE | other.tail & SHARE, ..self }
    }

    /// Returns the number of the share in which the entry counts.
    pub(super) const fn share(self) -> u8 {
        (self.tail >> SHARE_SHIFT) as u8
    }

    /// Returns the content.
    #[inline]
    pub(super) fn content(self) -> Content {
        let number = self.head.get() & MAX_EXACT;
        let moment = Timestamp::from_millis(self.tail & MAX_EXACT);
        match self.head.get() & TAG {
            tag if tag == FIXED_WINDOW.get() => {
                Content::Plain(Plain::FixedWindow(fixed_window::State {
                    used: number,
                    resets_at: moment,
                }))
            }
            tag if tag == TOKEN_BUCKET.get() => {
                Content::Plain(Plain::TokenBucket(token_bucket::State {
                    level: number,
                    at: moment,
                }))
            }
            tag if tag == LARGE.get() || tag == PINNED.get() => Content::Large(number as usize),
            _ => Content::Refunded,
        }
    }

    /// Returns the time at which the entry expires, which is never too early. For a token bucket,
    /// the time is too late by at most a sixteenth of the time that the bucket takes to fill.
    pub(super) fn expires_at(self) -> Timestamp {
        let moment = Timestamp::from_millis(self.tail & MAX_EXACT);
        moment.after(self.lifetime())
    }

    /// Returns whether the entry may be dropped to make room, and in which cases.
    #[inline]
    pub(super) fn retention(self) -> Retention {
        match self.head.get() & TAG {
            tag if tag == REFUNDED.get() || tag == PINNED.get() => Retention::Pinned,
            _ if self.head.get() & PROTECTED == 0 => Retention::Evictable,
            _ => Retention::AtLimit,
        }
    }

    /// Returns this entry, marked as the entry of a subject that has used up its limit.
    #[inline]
    pub(super) fn protected(self) -> Self {
        Self { head: self.head | PROTECTED, ..self }
    }

    /// Returns this entry with `index` as the new index of its large state. Valid only for an entry
    /// with a large state, because other entries have no index.
    pub(super) fn moved_to(self, index: usize) -> Self {
        Self::large(index, self.expires_at(), self.retention()).in_share_of(self)
    }

    /// Returns the time from the time that `tail` contains to the expiry of the entry. For every
    /// entry except a token bucket, the result is zero.
    fn lifetime(self) -> Millis {
        let low = (self.head.get() >> NUMBER_BITS) & ((1 << SPARE_BITS) - 1);
        lifetime::decode(low | (self.tail & !SHARE) >> NUMBER_BITS << SPARE_BITS)
    }

    fn of(tag: NonZeroU64, number: u64, tail: u64, retention: Retention) -> Self {
        let flag = if retention == Retention::Evictable { 0 } else { PROTECTED };
        Self { head: tag | flag | number, tail }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn retentions() -> impl Strategy<Value = Retention> {
        prop_oneof![Just(Retention::Evictable), Just(Retention::AtLimit)]
    }

    #[test]
    fn a_packed_state_is_two_words() {
        assert_eq!(size_of::<Option<Packed>>(), 16);
    }

    proptest! {
        #[test]
        fn a_fixed_window_comes_back_as_it_was(
            used in 0..=MAX_EXACT, resets_at in 0..=MAX_EXACT, retention in retentions(),
        ) {
            let resets_at = Timestamp::from_millis(resets_at);
            let state = fixed_window::State { used, resets_at };
            let state = Plain::FixedWindow(state);
            let packed = Packed::plain(state, resets_at, retention);
            prop_assert_eq!(packed.content(), Content::Plain(state));
            prop_assert_eq!(packed.expires_at(), resets_at);
            prop_assert_eq!(packed.retention(), retention);
            prop_assert_eq!(packed.protected().content(), packed.content());
            prop_assert_eq!(packed.protected().retention(), Retention::AtLimit);
        }

        #[test]
        fn a_token_bucket_comes_back_as_it_was(
            level in 0..=MAX_EXACT, at in 0..=MAX_EXACT, fills_in in 0..=MAX_EXACT,
            retention in retentions(), share in any::<u8>(),
        ) {
            let state = token_bucket::State { level, at: Timestamp::from_millis(at) };
            let expires_at = state.at.after(Millis::new(fills_in));
            let packed = Packed::plain(Plain::TokenBucket(state), expires_at, retention).in_share(share);
            prop_assert_eq!(packed.share(), share);
            prop_assert_eq!(packed.content(), Content::Plain(Plain::TokenBucket(state)));
            prop_assert!(packed.expires_at() >= expires_at);
            let late = packed.expires_at().since(expires_at).get();
            prop_assert!(late <= fills_in / 16, "{} late in {}", late, fills_in);
            prop_assert_eq!(packed.retention(), retention);
        }

        #[test]
        fn an_index_comes_back_as_it_was(
            index in 0_usize..1 << 40, expires_at in 0..=MAX_EXACT, retention in retentions(),
            share in any::<u8>(),
        ) {
            let expires_at = Timestamp::from_millis(expires_at);
            let packed = Packed::large(7, expires_at, retention).in_share(share).moved_to(index);
            prop_assert_eq!(packed.share(), share);
            let pinned = Packed::large(index, expires_at, Retention::Pinned).in_share_of(packed);
            prop_assert_eq!((pinned.share(), pinned.retention()), (share, Retention::Pinned));
            prop_assert_eq!(pinned.content(), packed.content());
            prop_assert_eq!(packed.content(), Content::Large(index));
            prop_assert_eq!((packed.expires_at(), packed.retention()), (expires_at, retention));
        }
    }
}
