//! A fixed window as two items: the count item and the reset item.
//!
//! The reset item contains the end of the window, and the count item contains the used units. The
//! two items cannot be changed in one step, so each item has a tag. A count belongs to the window
//! with a reset item that has the same tag. To open a window, a node changes the reset item by
//! compare-and-swap and gives it a tag that the count item does not have. After this change, nodes
//! treat the count as absent, and the node that counts first writes a new count. Every charge is
//! one compare-and-swap on the count item.
//!
//! The count item is read before the reset item, so the reset that was read is never older than the
//! count. If a window was opened between the two reads, the old count does not have the tag of the
//! new window and is not used.
//!
//! The tag is stored in the flags that memcached stores with a value. The flags also contain the
//! number of milliseconds from the end of the window to the second in the reset item's value.
//! Programs that use only the values can read the values as before. Tollgate uses only the upper
//! half of the flags, which client libraries leave to applications. Values that such programs write
//! have no tag, and a count without a tag belongs to the current window. The races are described in
//! `docs/design/0002-memcached-layout.md`.

use tollgate_core::algo::fixed_window::State;
use tollgate_core::{Cell, MAX_EXACT, Timestamp};

use super::{ExpiryMargin, ReadItems, View};
use crate::wire::{Command, Item, Stored};

/// The position of the lowest bit of the number of milliseconds in the flags of the reset item.
const MILLIS_SHIFT: u32 = 16;
/// The mask that selects the milliseconds (10 bits) in flags that were shifted right by
/// [`MILLIS_SHIFT`].
const MILLIS_MASK: u32 = (1 << 10) - 1;

/// The position of the tag in the flags: the six bits above the milliseconds. The tag 0 means that
/// the value has no tag.
const TAG_SHIFT: u32 = 26;
const LAST_TAG: u8 = 63;

/// The most decimal digits of a number that Tollgate represents exactly.
const MAX_DIGITS: usize = 16;

/// A tag, which assigns a count to a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tag(u8);

/// The two items as they were read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    count: Option<ItemState>,
    reset: Option<ItemState>,
    /// The end of the window. `None` if the reset item does not contain a valid time.
    resets_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct ItemState {
    tag: Tag,
    token: u64,
}

impl Pair {
    pub(super) fn view(count: Option<&Stored>, reset: Option<&Stored>) -> View {
        let current =
            |stored: &Stored| ItemState { tag: Tag::of(stored.flags), token: stored.token };
        let pair = Self {
            count: count.map(current),
            reset: reset.map(current),
            resets_at: reset.and_then(resets_at),
        };
        let number = count.map(|count| number(&count.value));
        let used = if pair.is_of_this_window() { number.flatten() } else { None };
        let window = |resets_at| State { used: used.unwrap_or(0), resets_at };
        let is_tagged = |current: ItemState| current.tag != Tag::default();
        View {
            cell: pair.resets_at.map(|resets_at| Cell::FixedWindow(window(resets_at))),
            is_invalid: (reset.is_some() && pair.resets_at.is_none()) || number == Some(None),
            // The reset item expires after the count item, so a count without a reset means that
            // the server dropped the reset.
            is_torn: reset.is_none() && pair.count.is_some_and(is_tagged),
            held: ReadItems::Pair(pair),
        }
    }

    fn is_of_this_window(&self) -> bool {
        let (Some(count), Some(reset)) = (self.count, self.reset) else { return false };
        count.tag == reset.tag || count.tag == Tag::default()
    }

    pub(super) fn changes<'n>(
        &self,
        count: &'n [u8],
        reset: &'n [u8],
        next: Option<&Cell>,
        expires: impl Fn(ExpiryMargin) -> i32,
    ) -> Vec<Command<'n>> {
        let Some(Cell::FixedWindow(next)) = next else {
            // The reset is removed first. If the removal of the count then fails, the count belongs
            // to no window.
            let remove = |key, current: Option<ItemState>| {
                current.map(|it| Command::Remove { key, token: it.token })
            };
            return remove(reset, self.reset)
                .into_iter()
                .chain(remove(count, self.count))
                .collect();
        };
        let put = |key, current: Option<ItemState>, item| match current {
            Some(ItemState { token, .. }) => Command::Replace { key, item, token },
            None => Command::Add { key, item },
        };
        let mut commands = Vec::with_capacity(2);
        let mut tag = self.reset.map_or_else(Tag::default, |reset| reset.tag);
        if self.resets_at != Some(next.resets_at) {
            tag = self.fresh_tag();
            let (value, millis) = seconds(next.resets_at);
            let flags = tag.flags() | millis << MILLIS_SHIFT;
            let item = Item { value, flags, expires: expires(ExpiryMargin::Longer) };
            commands.push(put(reset, self.reset, item));
        }
        let value = next.used.to_string().into_bytes();
        let item = Item { value, flags: tag.flags(), expires: expires(ExpiryMargin::None) };
        commands.push(put(count, self.count, item));
        commands
    }

    /// Returns a tag that neither of the two items has.
    fn fresh_tag(&self) -> Tag {
        let of =
            |current: Option<ItemState>| current.map_or_else(Tag::default, |current| current.tag);
        let (count, reset) = (of(self.count), of(self.reset));
        let next = reset.next();
        if next == count { next.next() } else { next }
    }
}

impl Tag {
    const fn of(flags: u32) -> Self {
        Self((flags >> TAG_SHIFT) as u8)
    }

    const fn flags(self) -> u32 {
        (self.0 as u32) << TAG_SHIFT
    }

    const fn next(self) -> Self {
        if self.0 >= LAST_TAG { Self(1) } else { Self(self.0 + 1) }
    }
}

/// Returns the end of the window in seconds, rounded up, in decimal, and the number of milliseconds
/// that were added by rounding up.
fn seconds(resets_at: Timestamp) -> (Vec<u8>, u32) {
    let seconds = resets_at.as_secs_ceil();
    let millis = (seconds * 1_000).saturating_sub(resets_at.as_millis());
    (seconds.to_string().into_bytes(), u32::try_from(millis).unwrap_or(0))
}

fn resets_at(stored: &Stored) -> Option<Timestamp> {
    let millis = u64::from(stored.flags >> MILLIS_SHIFT & MILLIS_MASK);
    let resets_at = number(&stored.value)?.checked_mul(1_000)?.checked_sub(millis)?;
    (millis < 1_000 && resets_at <= MAX_EXACT).then(|| Timestamp::from_millis(resets_at))
}

/// Parses a decimal number. Trailing spaces are permitted, because memcached adds spaces to a
/// number that a decrement makes shorter.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii_end();
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (number <= MAX_EXACT).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(value: &str, flags: u32) -> Stored {
        Stored { value: value.as_bytes().to_vec(), flags, token: 9 }
    }

    fn window(used: u64, resets_at: u64) -> Cell {
        Cell::FixedWindow(State { used, resets_at: Timestamp::from_millis(resets_at) })
    }

    /// Applies the commands that change `view` into `next`. Returns the new count item and the new
    /// reset item.
    fn written(view: &View, next: &Cell) -> (Option<Stored>, Option<Stored>) {
        let ReadItems::Pair(pair) = &view.held else { panic!("no pair") };
        let (mut count, mut reset) = (None, None);
        for command in pair.changes(b"c", b"r", Some(next), |_| 60) {
            let (Command::Add { key, item } | Command::Replace { key, item, .. }) = command else {
                panic!("{command:?}")
            };
            let target = if key == b"c" { &mut count } else { &mut reset };
            *target = Some(Stored { value: item.value, flags: item.flags, token: 10 });
        }
        (count, reset)
    }

    #[test]
    fn the_values_are_those_of_the_old_model() {
        let (count, reset) = written(&Pair::view(None, None), &window(3, 1_700_000_000_123));
        let (count, reset) = (count.unwrap(), reset.unwrap());
        assert_eq!((&*count.value, &*reset.value), (&b"3"[..], &b"1700000001"[..]));
        assert_eq!((count.flags & 0xffff, reset.flags & 0xffff), (0, 0), "left to the clients");
        let view = Pair::view(Some(&count), Some(&reset));
        assert_eq!(view.cell, Some(window(3, 1_700_000_000_123)), "exact to the millisecond");
    }

    #[test]
    fn a_count_of_the_window_before_counts_as_none() {
        let (old, reset) = written(&Pair::view(None, None), &window(3, 10_000));
        let (old, reset) = (old.unwrap(), reset.unwrap());
        let (_, opened) = written(&Pair::view(Some(&old), Some(&reset)), &window(1, 20_000));
        let between = Pair::view(Some(&old), opened.as_ref());
        assert_eq!(between.cell, Some(window(0, 20_000)));
        let (count, kept) = written(&between, &window(1, 20_000));
        assert_eq!(kept, None, "the window is open already");
        assert_eq!(Pair::view(count.as_ref(), opened.as_ref()).cell, Some(window(1, 20_000)));
        for tag in 0..=LAST_TAG {
            for other in 0..=LAST_TAG {
                let current = |tag| Some(ItemState { tag: Tag(tag), token: 1 });
                let pair = Pair { count: current(tag), reset: current(other), resets_at: None };
                let fresh = pair.fresh_tag();
                assert!(fresh.0 >= 1 && fresh.0 <= LAST_TAG && fresh.0 != tag && fresh.0 != other);
            }
        }
    }

    #[test]
    fn what_old_programs_write_is_understood() {
        let view = Pair::view(Some(&stored("7 ", 0)), Some(&stored("1700000000", 0)));
        assert_eq!(view.cell, Some(window(7, 1_700_000_000_000)));
        // Another program wrote this count in a window that Tollgate opened.
        let (_, reset) = written(&Pair::view(None, None), &window(1, 10_500));
        assert_eq!(Pair::view(Some(&stored("4", 0)), reset.as_ref()).cell, Some(window(4, 10_500)));
    }

    #[test]
    fn what_is_no_window_is_junk_and_what_lost_its_reset_is_torn() {
        for (count, reset) in
            [("x", "1700000000"), ("1", "-1"), ("1", ""), ("99999999999999999", "1"), ("1", "1.5")]
        {
            let view = Pair::view(Some(&stored(count, 0)), Some(&stored(reset, 0)));
            assert!(view.is_invalid, "{count} {reset}");
        }
        let (count, reset) = written(&Pair::view(None, None), &window(3, 10_000));
        assert!(Pair::view(count.as_ref(), None).is_torn);
        assert!(!Pair::view(None, reset.as_ref()).is_torn, "nobody has counted yet");
        assert!(!Pair::view(Some(&stored("4", 0)), None).is_torn, "not ours");
    }
}
