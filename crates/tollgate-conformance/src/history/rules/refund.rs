//! A refund gives back what its charge took, once, and while that is in force.

use std::collections::BTreeMap;

use tollgate_core::decide::refundable_until;
use tollgate_core::{Ask, ChargeId};

use super::super::event::Teller;
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>) {
    let mut receipts = BTreeMap::<ChargeId, Receipt<'_, '_>>::new();
    for event in &case.account.events {
        match (event.ask, event.told) {
            (Ask::Take { id, .. }, _) if event.may_be_admitted() > 0 => {
                let receipt = receipts.entry(id).or_default();
                receipt.charged += event.may_be_admitted();
                receipt.charges += 1;
            }
            (Ask::Refund { id, mark, .. }, Some((Teller::Store, ..))) if event.given_back() > 0 => {
                if let Some(what) = misplaced(event) {
                    case.violates(Rule::Refund, what, &[event]);
                }
                // What one clock had ended the store need not remember for another one that lags.
                let latest = case.clocks.latest_before(event.answered);
                if !is_lease(event) && latest >= refundable_until(event.limit, mark) {
                    continue;
                }
                let receipt = receipts.entry(id).or_default();
                receipt.given_back += event.given_back();
                receipt.refunds.push(event);
            }
            _ => {}
        }
    }
    for Receipt { charged, charges, given_back, refunds } in receipts.into_values() {
        let last = &refunds[refunds.len().saturating_sub(2)..];
        if given_back > charged {
            let what = format!("{given_back} given back of {charged} charged");
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
    given_back: Units,
    refunds: Vec<&'e Event<'h>>,
}

/// A lease is given back by its id, at whatever time.
fn is_lease(event: &Event<'_>) -> bool {
    matches!(event.limit.algorithm(), Algorithm::Concurrency(_))
}

/// What is wrong with one refund by itself, which gave something back.
fn misplaced(event: &Event<'_>) -> Option<String> {
    let Ask::Refund { cost, mark, .. } = event.ask else { return None };
    let (asked, given_back) = (Units::from(cost.get()), event.given_back());
    let over_at = refundable_until(event.limit, mark);
    match event.limit.algorithm() {
        // It is given back whole.
        Algorithm::Concurrency(_) => None,
        _ if given_back > asked => {
            Some(format!("{given_back} given back where {asked} were asked"))
        }
        _ if over_at <= event.now => {
            Some(format!("given back though what it was of was over at {}", over_at.as_millis()))
        }
        Algorithm::FixedWindow(_) if event.reading()?.whole_at != over_at => {
            let resets_at = event.reading()?.whole_at.as_millis();
            Some(format!("given back to the window until {resets_at}, which is another one"))
        }
        _ => None,
    }
}
