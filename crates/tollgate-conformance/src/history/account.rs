//! One limit and subject: all that was asked of it and told.

use std::collections::BTreeMap;

use tollgate_core::{Algorithm, Ask, Found, Limit, Subject, Timestamp};

use super::call::{History, Loss, Moment, NEVER, Outcome};
use super::event::{Event, Teller};
use super::holds::{self, Holds};

/// One limit and subject.
#[derive(Debug)]
pub(super) struct Account<'h> {
    /// The limit; of several of one name the most generous one.
    pub(super) limit: &'h Limit,
    pub(super) subject: &'h Subject,
    /// All, in the order in which they were asked.
    pub(super) events: Vec<Event<'h>>,
    /// What the store told between two losses of its state, in the order in which it was asked.
    pub(super) epochs: Vec<Vec<Event<'h>>>,
    /// What may have been carried out, and in which epoch nobody knows.
    pub(super) uncertain: Vec<Event<'h>>,
    /// What was reserved, or may have been.
    pub(super) holds: Holds<'h>,
}

impl<'h> Account<'h> {
    /// Every limit and subject of `history`.
    pub(super) fn all(history: &'h History) -> Vec<Self> {
        let mut events = BTreeMap::<_, Vec<_>>::new();
        let mut calls: Vec<_> = history.calls.iter().enumerate().collect();
        calls.sort_by_key(|(_, call)| call.issued);
        for (number, call) in calls {
            if matches!(call.outcome, Outcome::NotCarriedOut) {
                continue;
            }
            for (place, asked) in call.charges.iter().enumerate() {
                let key = (asked.limit.name(), &asked.subject);
                let event = Event::new(number, call, place, asked);
                events.entry(key).or_default().push(event);
            }
        }
        let account = |((_, subject), events)| Self::new(subject, events, &history.losses);
        events.into_iter().filter_map(account).collect()
    }

    fn new(subject: &'h Subject, mut events: Vec<Event<'h>>, losses: &[Loss]) -> Option<Self> {
        let holds = holds::all(&events);
        for event in &mut events {
            if let Ask::Settle { id, .. } = event.ask {
                event.reserved = holds.get(&id).map_or(0, holds::Held::units);
            }
        }
        let limit = events.iter().map(|event| event.limit).max_by_key(|limit| limit.capacity())?;
        let losses = losses_of(&events, losses);
        let mut epochs = vec![Vec::new(); losses.len() + 1];
        let mut uncertain = Vec::new();
        for event in &events {
            let epoch = losses.partition_point(|loss| loss.until <= event.issued);
            let between = losses.get(epoch).is_some_and(|loss| event.straddles(loss));
            match event.told {
                Some((Teller::Store, ..)) if !between => epochs[epoch].push(*event),
                Some((Teller::Store, ..)) | None => uncertain.push(*event),
                // Another one answered, but the store may have carried it out unheard.
                Some((Teller::Fallback, ..)) if event.may_be_unheard => {
                    uncertain.push(Event { told: None, ..*event });
                }
                Some((Teller::Memory | Teller::Fallback, ..)) => {}
            }
        }
        Some(Self { limit, subject, events, epochs, uncertain, holds })
    }

    /// How the limit counts, if it counted so all the time.
    pub(super) fn algorithm(&self) -> Option<&'h Algorithm> {
        let algorithm = self.limit.algorithm();
        self.events.iter().all(|event| event.limit.algorithm() == algorithm).then_some(algorithm)
    }
}

/// When the account's state was lost: wherever the store's was, and where a charge replaced what
/// counted as none. Apart from each other, in their order.
fn losses_of(events: &[Event<'_>], losses: &[Loss]) -> Vec<Loss> {
    let replaces = |event: &&Event<'_>| {
        let found = event.reading().map(|reading| reading.found);
        found == Some(Found::Discarded) && event.counted() > 0
    };
    let own = events.iter().filter(replaces);
    let own = own.map(|event| Loss { from: event.issued, until: event.answered });
    let mut all: Vec<_> = losses.iter().copied().chain(own).collect();
    all.sort_by_key(|loss| loss.from);
    let mut apart: Vec<Loss> = Vec::with_capacity(all.len());
    for loss in all {
        match apart.last_mut() {
            Some(last) if loss.from <= last.until => last.until = last.until.max(loss.until),
            _ => apart.push(loss),
        }
    }
    apart
}

/// How far the clocks of all callers had come.
#[derive(Debug)]
pub(super) struct Clocks {
    /// When each time was first passed, in rising order of both.
    reached: Vec<(Moment, Timestamp)>,
}

impl Clocks {
    pub(super) fn of(history: &History) -> Self {
        let mut reached: Vec<_> =
            history.calls.iter().map(|call| (call.issued, call.now)).collect();
        reached.sort_unstable();
        let mut latest = None;
        reached.retain(|(_, now)| {
            let is_later = latest.is_none_or(|latest| latest < *now);
            latest = latest.max(Some(*now));
            is_later
        });
        Self { reached }
    }

    /// The latest time that any caller had shown the store before `moment`. What ended by then the
    /// store may have forgotten, and a caller whose clock lags finds nothing of it.
    pub(super) fn latest_before(&self, moment: Moment) -> Timestamp {
        let count = self.reached.partition_point(|(issued, _)| *issued < moment);
        count.checked_sub(1).map_or(Timestamp::EPOCH, |last| self.reached[last].1)
    }

    /// When a caller first showed the store `time` or a later one.
    pub(super) fn reaching(&self, time: Timestamp) -> Moment {
        let index = self.reached.partition_point(|(_, now)| *now < time);
        self.reached.get(index).map_or(NEVER, |(issued, _)| *issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Call;

    #[test]
    fn clocks_never_run_back() {
        let call = |issued, now| Call {
            issued,
            answered: NEVER,
            now: Timestamp::from_millis(now),
            charges: Vec::new(),
            outcome: Outcome::Unknown,
        };
        let calls = vec![call(5, 30), call(1, 10), call(3, 20), call(4, 5), call(9, 25)];
        let clocks = Clocks::of(&History { calls, ..History::default() });
        let seen = [0, 1, 2, 4, 5, 6, 10].map(|at| clocks.latest_before(at).as_millis());
        assert_eq!(seen, [0, 0, 10, 20, 20, 30, 30]);
    }

    #[test]
    fn losses_that_meet_are_one() {
        let loss = |from, until| Loss { from, until };
        let apart = losses_of(&[], &[loss(5, 9), loss(1, 3), loss(2, 4), loss(20, NEVER)]);
        let apart: Vec<_> = apart.iter().map(|loss| (loss.from, loss.until)).collect();
        assert_eq!(apart, [(1, 4), (5, 9), (20, NEVER)]);
    }
}
