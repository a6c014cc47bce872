//! Checks that the fallback stays within its bound.

use std::collections::BTreeMap;

use super::super::event::{AnswerSource, Decision};
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>) {
    let mut windows = BTreeMap::<u64, (Units, &Event<'_>)>::new();
    for event in &case.account.events {
        let Some((AnswerSource::Fallback, Decision::Admitted, reading)) = event.answer else {
            continue;
        };
        let window = match event.limit.algorithm() {
            Algorithm::FixedWindow(_) => reading.full_reset_at.as_millis(),
            _ => event.now.as_millis() / event.limit.window().get(),
        };
        let (admitted, last) = windows.entry(window).or_insert((0, event));
        (*admitted, *last) = (*admitted + event.requested(), event);
    }
    let most = case.allowance.fallback;
    for (admitted, last) in windows.into_values() {
        if admitted > Units::from(most) {
            let what = format!("{admitted} admitted in a window without the store, of {most}");
            case.violates(Rule::Fallback, what, &[last]);
        }
    }
}
