//! Checks that an answer includes all calls that were answered before its request was sent.

use super::super::window::Window;
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let highest = Highest::new(window.certain_events());
    for event in window.certain_events() {
        let Some(earlier) = highest.before(event) else { continue };
        let (was, is) = (earlier.used(), event.start());
        if was > is + case.lost() {
            let what = format!("{was} were used before, and {is} in a later answer");
            case.violates(Rule::Order, what, &[earlier, event]);
            return;
        }
    }
}

/// For each moment, the answer with the most used units among the answers that had arrived before
/// this moment.
struct Highest<'e, 'h>(Vec<&'e Event<'h>>);

impl<'e, 'h> Highest<'e, 'h> {
    fn new(events: impl Iterator<Item = &'e Event<'h>>) -> Self {
        let mut answered: Vec<_> = events.collect();
        answered.sort_by_key(|event| event.answered);
        let mut most = None;
        answered.retain(|event| {
            let is_more = most.is_none_or(|most| most < event.used());
            most = most.max(Some(event.used()));
            is_more
        });
        Self(answered)
    }

    /// Returns the answer with the most used units among the answers that had arrived before
    /// `event` was sent.
    fn before(&self, event: &Event<'h>) -> Option<&'e Event<'h>> {
        let count = self.0.partition_point(|earlier| earlier.precedes(event));
        count.checked_sub(1).map(|last| self.0[last])
    }
}
