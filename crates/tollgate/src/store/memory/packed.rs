//! The state of one entry in two words.
//!
//! Every quantity of a decision is below 2^53: that leaves eleven bits of each word. They say what
//! the entry is and whether it may be evicted, and hold an estimate of when a bucket is full.

use std::num::NonZeroU64;

use tollgate_core::algo::{fixed_window, token_bucket};
use tollgate_core::decide::Plain;
use tollgate_core::{MAX_EXACT, Millis, Timestamp};

use super::lifetime;

/// Whether an entry may be dropped to make room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retention {
    /// The limit has units left: losing the state gives away what was used.
    Evictable,
    /// The limit is reached, or units are in flight, or a refund is remembered: whoever could drop
    /// it could get past the limit.
    Protected,
}

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The state itself.
    Plain(Plain),
    /// The index of the state, which is larger than two words, among the [`CellTransfer`].
    ///
    /// [`CellTransfer`]: super::cells::CellTransfer
    Large(usize),
    /// That a charge was refunded.
    Refunded,
}

/// [`Content`] with its end and its [`Retention`], 16 bytes also as an `Option`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    head: NonZeroU64,
    tail: u64,
}

const NUMBER_BITS: u32 = 53;
const TAG_SHIFT: u32 = 61;
const PROTECTED: u64 = 1 << 60;
/// The bits of the head between the number and [`PROTECTED`].
const SPARE_BITS: u32 = 7;

const FIXED_WINDOW: NonZeroU64 = tag(1);
const TOKEN_BUCKET: NonZeroU64 = tag(2);
const LARGE: NonZeroU64 = tag(3);
const REFUNDED: NonZeroU64 = tag(4);
const TAG: u64 = !0 << TAG_SHIFT;

/// No tag is zero, so that no head is.
const fn tag(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number << TAG_SHIFT).unwrap()
}

impl Packed {
    /// A `state` that says nothing any more from `expires_at` on.
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

    /// The state with this `index` among the large ones.
    pub(super) fn large(index: usize, expires_at: Timestamp, retention: Retention) -> Self {
        Self::of(LARGE, index as u64, expires_at.as_millis(), retention)
    }

    /// That a charge was refunded, which need not be known any more from `expires_at` on.
    pub(super) fn refunded(expires_at: Timestamp) -> Self {
        Self::of(REFUNDED, 0, expires_at.as_millis(), Retention::Protected)
    }

    /// What it holds.
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
            tag if tag == LARGE.get() => Content::Large(number as usize),
            _ => Content::Refunded,
        }
    }

    /// The moment from which it says nothing any more. Never too early; of a token bucket at most
    /// one part in 2048 of its time to fill too late.
    pub(super) fn expires_at(self) -> Timestamp {
        let moment = Timestamp::from_millis(self.tail & MAX_EXACT);
        moment.after(self.lifetime())
    }

    /// Whether it may be dropped.
    pub(super) fn retention(self) -> Retention {
        if self.head.get() & PROTECTED == 0 { Retention::Evictable } else { Retention::Protected }
    }

    /// The same that may not be dropped.
    pub(super) fn protected(self) -> Self {
        Self { head: self.head | PROTECTED, ..self }
    }

    /// The same as another index among the large ones; nothing else has an index.
    pub(super) fn moved_to(self, index: usize) -> Self {
        Self::large(index, self.expires_at(), self.retention())
    }

    /// What is added to the moment in the tail: only a token bucket has any of these bits set.
    fn lifetime(self) -> Millis {
        let low = (self.head.get() >> NUMBER_BITS) & ((1 << SPARE_BITS) - 1);
        lifetime::decode(low | (self.tail >> NUMBER_BITS) << SPARE_BITS)
    }

    fn of(tag: NonZeroU64, number: u64, tail: u64, retention: Retention) -> Self {
        let flag = if retention == Retention::Protected { PROTECTED } else { 0 };
        Self { head: tag | flag | number, tail }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn retentions() -> impl Strategy<Value = Retention> {
        prop_oneof![Just(Retention::Evictable), Just(Retention::Protected)]
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
            prop_assert_eq!(packed.protected().retention(), Retention::Protected);
        }

        #[test]
        fn a_token_bucket_comes_back_as_it_was(
            level in 0..=MAX_EXACT, at in 0..=MAX_EXACT, fills_in in 0..=MAX_EXACT,
            retention in retentions(),
        ) {
            let state = token_bucket::State { level, at: Timestamp::from_millis(at) };
            let expires_at = state.at.after(Millis::new(fills_in));
            let packed = Packed::plain(Plain::TokenBucket(state), expires_at, retention);
            prop_assert_eq!(packed.content(), Content::Plain(Plain::TokenBucket(state)));
            prop_assert!(packed.expires_at() >= expires_at);
            let late = packed.expires_at().since(expires_at).get();
            prop_assert!(late <= fills_in / 2048, "{} late in {}", late, fills_in);
            prop_assert_eq!(packed.retention(), retention);
        }

        #[test]
        fn an_index_comes_back_as_it_was(
            index in 0_usize..1 << 40, expires_at in 0..=MAX_EXACT, retention in retentions(),
        ) {
            let expires_at = Timestamp::from_millis(expires_at);
            let packed = Packed::large(7, expires_at, retention).moved_to(index);
            prop_assert_eq!(packed.content(), Content::Large(index));
            prop_assert_eq!((packed.expires_at(), packed.retention()), (expires_at, retention));
        }
    }
}
