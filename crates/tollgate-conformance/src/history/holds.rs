//! The reservations of one limit and subject, with the ends that the answers report.

use std::collections::BTreeMap;

use tollgate_core::decide::refundable_until;
use tollgate_core::{Admission, ChargeId, ChargePosition, OnExpiry, Operation, Timestamp};

use super::call::Moment;
use super::clocks::Clocks;
use super::event::{Event, Units};

/// One reservation.
#[derive(Clone, Debug)]
pub(super) struct Reservation<'h> {
    /// The call that made the reservation.
    pub(super) reserved_by: Event<'h>,
    /// The window or block in which the reservation was charged. `None` if no answer arrived.
    pub(super) position: Option<ChargePosition>,
    /// The ends that were reported, each with the moment of the answer, in the order of the
    /// requests.
    reported_ends: Vec<(Moment, Timestamp)>,
    /// The latest end that the reservation may have, including an end that no answer reported.
    latest: Timestamp,
    /// Whether the reservation was settled or may have been settled.
    settled: bool,
}

/// The reservations of one limit and subject. The key is the id of the charge that made the
/// reservation.
pub(super) type Holds<'h> = BTreeMap<ChargeId, Reservation<'h>>;

/// Returns the reservations among `events`, which are in the order of their requests. If two calls
/// reserve with the same id, nothing is certain about the reservation, and the result contains the
/// reservation of the first call.
pub(super) fn all<'h>(events: &[Event<'h>]) -> Holds<'h> {
    let mut holds = Holds::new();
    for event in events {
        match event.operation {
            Operation::Reserve { id, until, .. } if event.may_be_admitted() > 0 => {
                let end = event.limit.reservation_terms().end(until, event.now);
                let held = holds.entry(id).or_insert_with(|| Reservation::new(event));
                held.reported_ends.push((event.answered, end));
                held.latest = held.latest.max(end);
            }
            Operation::Extend { id, until, .. } => {
                let Some(held) = holds.get_mut(&id) else { continue };
                let end = event.limit.reservation_terms().end(until, event.now);
                match event.answer {
                    Some((.., reading)) if reading.admission != Admission::Now => {}
                    Some(_) => held.reported_ends.push((event.answered, end)),
                    None => {}
                }
                held.latest = held.latest.max(end);
            }
            Operation::Settle { id, .. } => {
                let Some(held) = holds.get_mut(&id) else { continue };
                held.settled |=
                    event.answer.is_none_or(|(.., reading)| reading.admission == Admission::Now);
            }
            _ => {}
        }
    }
    holds
}

impl<'h> Reservation<'h> {
    fn new(reserved_by: &Event<'h>) -> Self {
        let position = reserved_by.reading().map(|reading| reading.position);
        Self {
            reserved_by: *reserved_by,
            position,
            reported_ends: Vec::new(),
            latest: Timestamp::EPOCH,
            settled: false,
        }
    }

    /// Returns the reserved units, or the requested units if no answer arrived.
    pub(super) fn units(&self) -> Units {
        self.reserved_by.may_be_admitted()
    }

    /// Returns whether the reservation is released when it expires.
    pub(super) fn is_released(&self) -> bool {
        self.reserved_by.limit.reservation_terms().on_expiry == OnExpiry::Release
    }

    /// Returns whether the reservation was charged to the window that ends at `resets_at`, and its
    /// units return to that window when the reservation expires.
    pub(super) fn is_released_into(&self, resets_at: Timestamp) -> bool {
        let limit = self.reserved_by.limit;
        let is_there = |position| refundable_until(limit, position) == resets_at;
        self.is_released() && self.position.is_none_or(is_there) && self.first_end() < resets_at
    }

    /// Returns whether the reservation may have expired before `event`, according to the clock of
    /// any caller.
    pub(super) fn may_be_over(&self, event: &Event<'_>, clocks: &Clocks) -> bool {
        clocks.latest_before(event.answered) >= self.end_before(event.issued)
    }

    /// Returns whether the reservation must have expired before `event`, because its latest
    /// possible end is not after the event's own time.
    pub(super) fn is_over(&self, event: &Event<'_>) -> bool {
        !self.settled && event.now >= self.latest
    }

    /// Returns the earliest moment at which any call may have found the reservation expired.
    pub(super) fn may_run_out_from(&self, clocks: &Clocks) -> Moment {
        clocks.reaching(self.first_end())
    }

    fn first_end(&self) -> Timestamp {
        self.reported_ends.first().map_or(self.latest, |(_, end)| *end)
    }

    /// Returns the latest end that was reported before `moment`.
    fn end_before(&self, moment: Moment) -> Timestamp {
        let reported = self.reported_ends.iter().filter(|(answered, _)| *answered < moment);
        reported.map(|(_, end)| *end).max().unwrap_or_else(|| self.first_end())
    }
}
