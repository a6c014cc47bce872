//! All charges and answers of a history on one limit for one subject.

use std::collections::BTreeMap;

use tollgate_core::{Algorithm, Limit, Operation, StoredState, Subject};

use super::allowance::Allowance;
use super::call::{History, Loss, Outcome};
use super::event::{AnswerSource, Event};
use super::holds::{self, Holds};

/// The events of a history on one limit for one subject.
#[derive(Debug)]
pub(super) struct Account<'h> {
    /// The limit. If the history contains several limits with this name, this is the limit with the
    /// largest capacity.
    pub(super) limit: &'h Limit,
    pub(super) subject: &'h Subject,
    /// All events, in the order of their requests.
    pub(super) events: Vec<Event<'h>>,
    /// The answers of the store, in one group for each epoch. An epoch is the period between two
    /// losses of the store's state. Each group is in the order of the requests.
    pub(super) epochs: Vec<Vec<Event<'h>>>,
    /// Events that may not have been executed, and events that may have been executed in more than
    /// one epoch.
    pub(super) uncertain: Vec<Event<'h>>,
    /// The reservations that were made or may have been made.
    pub(super) holds: Holds<'h>,
}

impl<'h> Account<'h> {
    /// Returns an account for every pair of a limit and a subject in `history`.
    pub(super) fn all(history: &'h History, allowance: Allowance) -> Vec<Self> {
        let mut events = BTreeMap::<_, Vec<_>>::new();
        let mut calls: Vec<_> = history.calls.iter().enumerate().collect();
        calls.sort_by_key(|(_, call)| call.issued);
        for (number, call) in calls {
            if matches!(call.outcome, Outcome::NotCarriedOut) {
                continue;
            }
            for (index, charge) in call.charges.iter().enumerate() {
                let key = (charge.limit.name(), &charge.subject);
                let mut event = Event::new(number, call, index, charge);
                event.may_be_held |= allowance.step_by_step && call.charges.len() > 1;
                events.entry(key).or_default().push(event);
            }
        }
        let account = |((_, subject), events)| {
            Self::new(subject, events, &history.losses, allowance.charged_later)
        };
        events.into_iter().filter_map(account).collect()
    }

    fn new(
        subject: &'h Subject,
        mut events: Vec<Event<'h>>,
        losses: &[Loss],
        charged_later: bool,
    ) -> Option<Self> {
        let holds = holds::all(&events);
        for event in &mut events {
            if let Operation::Settle { id, .. } = event.operation {
                event.reserved = holds.get(&id).map_or(0, holds::Reservation::units);
            }
        }
        let limit = events.iter().map(|event| event.limit).max_by_key(|limit| limit.capacity())?;
        let losses = losses_of(&events, losses);
        let mut epochs = vec![Vec::new(); losses.len() + 1];
        let mut uncertain = Vec::new();
        for event in &events {
            let epoch = losses.partition_point(|loss| loss.until <= event.issued);
            let between = losses.get(epoch).is_some_and(|loss| event.straddles(loss));
            match event.answer {
                Some((AnswerSource::Store, ..)) if !between => epochs[epoch].push(*event),
                Some((AnswerSource::Store, ..)) | None => uncertain.push(*event),
                // Another source answered. The store may have executed the charge nevertheless, if
                // the answer of the store was lost.
                Some((AnswerSource::Fallback, ..)) if event.may_have_run => {
                    uncertain.push(Event { answer: None, ..*event });
                }
                Some((AnswerSource::Fallback, _, reading))
                    if charged_later && event.is_charged_later() =>
                {
                    let may_count_until = reading.full_reset_at;
                    uncertain.push(Event { answer: None, may_count_until, ..*event });
                }
                Some((AnswerSource::Memory | AnswerSource::Fallback, ..)) => {}
            }
        }
        Some(Self { limit, subject, events, epochs, uncertain, holds })
    }

    /// Returns the algorithm of the limit, or `None` if the algorithm changed during the history.
    pub(super) fn algorithm(&self) -> Option<&'h Algorithm> {
        let algorithm = self.limit.algorithm();
        self.events.iter().all(|event| event.limit.algorithm() == algorithm).then_some(algorithm)
    }
}

/// Returns the periods in which the account's state was lost. These are the losses of the store,
/// and the charges that replaced a state because that state counted as empty. The periods are in
/// order and do not overlap.
fn losses_of(events: &[Event<'_>], losses: &[Loss]) -> Vec<Loss> {
    let replaces = |event: &&Event<'_>| {
        let found = event.reading().map(|reading| reading.found);
        found == Some(StoredState::Discarded) && event.counted() > 0
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::NEVER;

    #[test]
    fn losses_that_meet_are_one() {
        let loss = |from, until| Loss { from, until };
        let apart = losses_of(&[], &[loss(5, 9), loss(1, 3), loss(2, 4), loss(20, NEVER)]);
        let apart: Vec<_> = apart.iter().map(|loss| (loss.from, loss.until)).collect();
        assert_eq!(apart, [(1, 4), (5, 9), (20, NEVER)]);
    }
}
