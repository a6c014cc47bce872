//! One limit and subject: all that was asked of it and told.

use std::collections::BTreeMap;

use tollgate_core::{Algorithm, Limit, Operation, StoredState, Subject};

use super::call::{History, Loss, Outcome};
use super::event::{AnswerSource, Event};
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
            if let Operation::Settle { id, .. } = event.operation {
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
                Some((AnswerSource::Store, ..)) if !between => epochs[epoch].push(*event),
                Some((AnswerSource::Store, ..)) | None => uncertain.push(*event),
                // Another one answered, but the store may have carried it out unheard.
                Some((AnswerSource::Fallback, ..)) if event.may_be_unheard => {
                    uncertain.push(Event { told: None, ..*event });
                }
                Some((AnswerSource::Memory | AnswerSource::Fallback, ..)) => {}
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
