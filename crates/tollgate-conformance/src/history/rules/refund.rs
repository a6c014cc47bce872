//! Checks that a refund returns at most the units of its charge, only once, and only while the
//! charge counts.

use std::collections::BTreeMap;

use tollgate_core::decide::refundable_until;
use tollgate_core::{ChargeId, Operation};

use super::super::event::AnswerSource;
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>) {
    let mut receipts = BTreeMap::<ChargeId, Receipt<'_, '_>>::new();
    for event in &case.account.events {
        match (event.operation, event.answer) {
            (Operation::Charge { id, .. }, _) if event.may_be_admitted() > 0 => {
                let receipt = receipts.entry(id).or_default();
                receipt.charged += event.may_be_admitted();
                receipt.charges += 1;
            }
            (Operation::Refund { id, position, .. }, Some((AnswerSource::Store, ..)))
                if event.refunded() > 0 =>
            {
                if let Some(what) = misplaced(event) {
                    case.violates(Rule::Refund, what, &[event]);
                }
                // The store may have deleted state that had ended by the fastest clock, although
                // the state still counts by a slower clock.
                let latest = case.clocks.latest_before(event.answered);
                if !is_lease(event) && latest >= refundable_until(event.limit, position) {
                    continue;
                }
                let receipt = receipts.entry(id).or_default();
                receipt.refunded += event.refunded();
                receipt.refunds.push(event);
            }
            _ => {}
        }
    }
    for Receipt { charged, charges, refunded, refunds } in receipts.into_values() {
        let last = &refunds[refunds.len().saturating_sub(2)..];
        if refunded > charged {
            let what = format!("{refunded} refunded of {charged} charged");
            case.violates(Rule::Refund, what, last);
        } else if refunds.len() > charges {
            let what = format!("{charges} charges, and {} refunds of them", refunds.len());
            case.violates(Rule::Refund, what, last);
        }
    }
}

/// The charges with one charge id, and the refunds of these charges.
#[derive(Default)]
struct Receipt<'e, 'h> {
    charged: Units,
    charges: usize,
    refunded: Units,
    refunds: Vec<&'e Event<'h>>,
}

/// Returns whether the event concerns a permit, which can be released by its id at any time.
fn is_lease(event: &Event<'_>) -> bool {
    matches!(event.limit.algorithm(), Algorithm::Concurrency(_))
}

/// Returns a description of the error if the refund `event` by itself is wrong: it returned too
/// many units, returned units too late, or returned units to another window.
fn misplaced(event: &Event<'_>) -> Option<String> {
    let Operation::Refund { cost, position, .. } = event.operation else { return None };
    let (requested, refunded) = (Units::from(cost.get()), event.refunded());
    let expires_at = refundable_until(event.limit, position);
    match event.limit.algorithm() {
        // A permit is always released completely.
        Algorithm::Concurrency(_) => None,
        _ if refunded > requested => {
            Some(format!("{refunded} refunded, but {requested} were requested"))
        }
        _ if expires_at <= event.now => {
            Some(format!("refunded after the charge had expired at {}", expires_at.as_millis()))
        }
        Algorithm::FixedWindow(_) if event.reading()?.full_reset_at != expires_at => {
            let resets_at = event.reading()?.full_reset_at.as_millis();
            Some(format!("refunded to another window, until {resets_at}"))
        }
        _ => None,
    }
}
