//! A refund gives back what its charge took, once, and while that is in force.

use std::collections::BTreeMap;

use tollgate_core::decide::refundable_until;
use tollgate_core::{ChargeId, Operation};

use super::super::event::AnswerSource;
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>) {
    let mut receipts = BTreeMap::<ChargeId, Receipt<'_, '_>>::new();
    for event in &case.account.events {
        match (event.operation, event.told) {
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
                // What one clock had ended the store need not remember for another one that lags.
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
            let what = format!("{refunded} given back of {charged} charged");
            case.violates(Rule::Refund, what, last);
        } else if refunds.len() > charges {
            let what = format!("{charges} charges, and {} refunds of them", refunds.len());
            case.violates(Rule::Refund, what, last);
        }
    }
}

/// What the charges of one id took, and what was given back of it.
#[derive(Default)]
struct Receipt<'e, 'h> {
    charged: Units,
    charges: usize,
    refunded: Units,
    refunds: Vec<&'e Event<'h>>,
}

/// A lease is given back by its id, at whatever time.
fn is_lease(event: &Event<'_>) -> bool {
    matches!(event.limit.algorithm(), Algorithm::Concurrency(_))
}

/// What is wrong with one refund by itself, which gave something back.
fn misplaced(event: &Event<'_>) -> Option<String> {
    let Operation::Refund { cost, position, .. } = event.operation else { return None };
    let (asked, refunded) = (Units::from(cost.get()), event.refunded());
    let expires_at = refundable_until(event.limit, position);
    match event.limit.algorithm() {
        // It is given back whole.
        Algorithm::Concurrency(_) => None,
        _ if refunded > asked => Some(format!("{refunded} given back where {asked} were asked")),
        _ if expires_at <= event.now => {
            Some(format!("given back though what it was of was over at {}", expires_at.as_millis()))
        }
        Algorithm::FixedWindow(_) if event.reading()?.full_reset_at != expires_at => {
            let resets_at = event.reading()?.full_reset_at.as_millis();
            Some(format!("given back to the window until {resets_at}, which is another one"))
        }
        _ => None,
    }
}
