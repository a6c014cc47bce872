//! Sorts entries by time with a bounded buffer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::entry::Entry;

/// Whether the time of an entry was changed to keep the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The entry was in time.
    InTime,
    /// An entry with a later time was already returned. The late entry gets the time of the entry
    /// that was returned last.
    Late,
}

/// A buffer that keeps entries to return them in the order of their times. An entry is returned
/// when the log has reached a time `horizon` after the entry, or when the buffer is full.
///
/// Entries with the same time keep their order. A single line with a time far in the future does
/// not change the order of the other entries. The entry of this line waits in the buffer. The
/// entries after it are returned without a wait, because they are more than `horizon` behind this
/// entry.
#[derive(Debug)]
pub(super) struct Reorder {
    horizon: u64,
    capacity: usize,
    /// A heap with the time, the number and the slot of each waiting entry. The earliest entry is
    /// on top.
    waiting: BinaryHeap<Reverse<(u64, u64, usize)>>,
    slots: Vec<Option<Entry>>,
    free: Vec<usize>,
    arrivals: u64,
    /// The latest time of all entries so far.
    latest: u64,
    /// The time of the last returned entry.
    reached: u64,
}

impl Reorder {
    /// Creates a buffer that keeps entries for `horizon` milliseconds of the log's time. The buffer
    /// keeps at most `capacity` entries.
    pub(super) fn new(horizon: u64, capacity: usize) -> Self {
        Self {
            horizon,
            capacity: capacity.max(1),
            waiting: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            arrivals: 0,
            latest: 0,
            reached: 0,
        }
    }

    /// Adds the log's next entry.
    pub(super) fn push(&mut self, mut entry: Entry) -> Arrival {
        let arrival = if entry.time < self.reached { Arrival::Late } else { Arrival::InTime };
        entry.time = entry.time.max(self.reached);
        self.latest = self.latest.max(entry.time);
        let time = entry.time;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(entry);
                slot
            }
            None => {
                self.slots.push(Some(entry));
                self.slots.len() - 1
            }
        };
        self.waiting.push(Reverse((time, self.arrivals, slot)));
        self.arrivals += 1;
        arrival
    }

    /// Returns the earliest entry if it has waited long enough or if the buffer is full.
    pub(super) fn pop_ready(&mut self) -> Option<Entry> {
        let Reverse((time, ..)) = self.waiting.peek()?;
        let ready = self.waiting.len() >= self.capacity || self.latest - time >= self.horizon;
        if ready { self.pop() } else { None }
    }

    /// Removes and returns the earliest entry, or returns `None` if the buffer is empty. Call this
    /// function after the end of the log, when no entry has to wait any more.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let Reverse((time, _, slot)) = self.waiting.pop()?;
        self.reached = time;
        self.free.push(slot);
        self.slots[slot].take()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::draft::Draft;
    use super::*;

    /// Returns an entry that is identified by its size.
    fn entry(time: u64, id: u64) -> Entry {
        let mut draft = Draft::default();
        draft.time = Some(time);
        draft.bytes = Some(id);
        draft.entry().unwrap()
    }

    /// Returns the entries that a buffer returned, as (time, id), and the number of late entries.
    fn sorted(times: &[u64], horizon: u64, capacity: usize) -> (Vec<(u64, u64)>, usize) {
        let mut buffer = Reorder::new(horizon, capacity);
        let (mut out, mut late) = (Vec::new(), 0);
        for (id, &time) in (0..).zip(times) {
            late += usize::from(buffer.push(entry(time, id)) == Arrival::Late);
            assert!(buffer.slots.len() <= capacity);
            while let Some(entry) = buffer.pop_ready() {
                out.push((entry.time, entry.bytes.unwrap()));
            }
        }
        while let Some(entry) = buffer.pop() {
            out.push((entry.time, entry.bytes.unwrap()));
        }
        (out, late)
    }

    #[test]
    fn equal_times_keep_their_order() {
        assert_eq!(sorted(&[5, 3, 5, 3], 100, 10), (vec![(3, 1), (3, 3), (5, 0), (5, 2)], 0));
    }

    #[test]
    fn what_comes_after_its_time_is_moved_and_counted() {
        assert_eq!(sorted(&[100, 200, 50], 10, 10), (vec![(100, 0), (100, 2), (200, 1)], 1));
        assert_eq!(sorted(&[3, 2, 1], 100, 2), (vec![(2, 1), (2, 2), (3, 0)], 1));
    }

    #[test]
    fn a_line_from_the_future_leaves_the_others_alone() {
        let (out, late) = sorted(&[10, 1_000_000, 20, 30], 5, 10);
        assert_eq!(out, [(10, 0), (20, 2), (30, 3), (1_000_000, 1)]);
        assert_eq!(late, 0);
    }

    proptest! {
        #[test]
        fn within_horizon_and_capacity_the_order_is_that_of_a_stable_sort(
            base in proptest::collection::vec(0u64..50, 0..200),
            jitter in proptest::collection::vec(0u64..=60, 200),
        ) {
            let mut clock = 1000;
            let times: Vec<u64> = base.iter().zip(&jitter).map(|(step, jitter)| { clock += step; clock - jitter }).collect();
            let mut expected: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
            expected.sort_by_key(|(time, _)| *time);
            prop_assert_eq!(sorted(&times, 61, 1000), (expected, 0));
        }

        #[test]
        fn whatever_comes_all_of_it_goes_in_order(
            times in proptest::collection::vec(0u64..1000, 0..200), horizon in 1u64..50, capacity in 1usize..20,
        ) {
            let (out, _) = sorted(&times, horizon, capacity);
            prop_assert!(out.is_sorted_by_key(|(time, _)| *time));
            let mut ids: Vec<u64> = out.iter().map(|(_, id)| *id).collect();
            ids.sort_unstable();
            prop_assert!(ids.into_iter().eq(0..times.len() as u64));
        }
    }
}
