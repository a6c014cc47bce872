//! What was answered before something else was asked, counts in it.

use super::super::window::Window;
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let highest = Highest::new(window.certain_events());
    for event in window.certain_events() {
        let Some(earlier) = highest.before(event) else { continue };
        let (was, is) = (earlier.used(), event.start());
        if was > is + case.lost() {
            let what = format!("{was} were used before, {is} are when it is asked later");
            case.violates(Rule::Order, what, &[earlier, event]);
            return;
        }
    }
}

/// The answer that told the most used of all that were there by a moment.
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

    /// The one before `event` was asked.
    fn before(&self, event: &Event<'h>) -> Option<&'e Event<'h>> {
        let count = self.0.partition_point(|earlier| earlier.precedes(event));
        count.checked_sub(1).map(|last| self.0[last])
    }
}
