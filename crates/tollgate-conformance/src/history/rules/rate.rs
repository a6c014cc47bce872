//! Checks that a token bucket admits at most the sum of its burst, the refilled tokens and the
//! refunds.

use tollgate_core::algo::TokenBucket;
use tollgate_core::{Operation, Timestamp};

use super::super::call::Moment;
use super::super::window::Sums;
use super::*;

/// Checks all periods of time in one pass. In each period that begins with a charge, the admitted
/// tokens minus the refilled and refunded tokens must be at most the burst.
///
/// A charge was decided no earlier than the time that its caller sent, and no later than the latest
/// time that any caller had sent before the answer. A refund counts for a period unless the refund
/// certainly happened before or after the period.
pub(super) fn check(case: &mut Case<'_, '_>, limit: &TokenBucket) {
    let (quota, window) = (Units::from(limit.quota()), Units::from(limit.window().get()));
    let refunds = Refunds::of(case);
    for epoch in &case.account.epochs {
        let mut charges: Vec<_> = epoch.iter().filter(|event| event.admitted() > 0).collect();
        charges.sort_by_key(|event| event.now);
        // Levels are tokens multiplied by the window in milliseconds, as in the token bucket of the
        // core.
        let (mut taken, mut most) = (0, Units::MIN);
        let (mut latest, mut answered) = (Timestamp::EPOCH, 0);
        for (event, first_issued) in charges.iter().zip(issued_from(&charges)) {
            let now = Units::from(event.now.as_millis());
            let before = refunds.certainly.before(first_issued) * window;
            most = most.max(quota * now - taken + before);
            taken += event.admitted() * window;
            latest = latest.max(event.now).max(case.clocks.latest_before(event.answered));
            answered = answered.max(event.answered);
            let refunded = refunds.maybe.before(answered) * window;
            let level = taken + most - quota * Units::from(latest.as_millis()) - refunded;
            if level > case.most() * window {
                let tokens = level / window;
                let most = case.most();
                let what =
                    format!("{tokens} tokens charged beyond the refill, of a burst of {most}");
                case.violates(Rule::Quota, what, &[event]);
                return;
            }
        }
    }
}

/// Returns, for each charge, the earliest moment at which this charge or one of the charges after
/// it in `charges` was sent.
fn issued_from(charges: &[&Event<'_>]) -> Vec<Moment> {
    let mut first = Moment::MAX;
    let mut issued: Vec<_> = charges.iter().map(|event| event.issued).collect();
    for issued in issued.iter_mut().rev() {
        first = first.min(*issued);
        *issued = first;
    }
    issued
}

/// The running sums of refunded units. One sum has the units that were certainly refunded, and the
/// other sum has all units that may have been refunded.
struct Refunds {
    certainly: Sums,
    maybe: Sums,
}

impl Refunds {
    fn of(case: &Case<'_, '_>) -> Self {
        let is_refund = |event: &&Event<'_>| {
            matches!(event.operation, Operation::Refund { .. } | Operation::Settle { .. })
        };
        let refunds = || case.account.events.iter().filter(is_refund);
        let answered = refunds().filter(|event| event.reading().is_some());
        // No answer reports the release of an expired reservation. Its units may therefore have
        // been refunded from its first possible end on.
        let released = case.account.holds.values().filter(|held| held.is_released());
        let ran_out = released.map(|held| (held.may_run_out_from(case.clocks), held.units()));
        let maybe = refunds().map(|event| (event.issued, event.refunded())).chain(ran_out);
        Self {
            certainly: Sums::new(answered.map(|event| (event.answered, event.refunded()))),
            maybe: Sums::new(maybe),
        }
    }
}
