//! The rules, one in each file. The checker applies the rules to one limit and subject at a time.

mod balance;
mod fallback;
mod fixed_window;
mod in_flight;
mod interval;
mod leased;
mod order;
mod quota;
mod rate;
mod reading;
mod refund;
mod refusal;
mod reset;
mod settlement;
mod span;

use tollgate_core::{Admission, Algorithm, DecisionSource, LimitMode};

use super::account::Account;
use super::allowance::Allowance;
use super::call::{Call, History, Loss, Outcome};
use super::clocks::Clocks;
use super::event::{Event, Units};
use super::report::{Report, Rule, Violation};

/// Checks `history` against every rule.
pub(super) fn check(history: &History, allowance: Allowance) -> Report {
    let mut report = Report { unrecorded: history.unrecorded, ..Report::default() };
    for (number, call) in history.calls.iter().enumerate() {
        count(&mut report, call);
        reading::check_count(&mut report, number, call);
    }
    let clocks = Clocks::of(history);
    for account in Account::all(history, allowance) {
        let (account, clocks, cuts) = (&account, &clocks, &history.cuts[..]);
        let mut case = Case { account, allowance, clocks, cuts, report: &mut report };
        reading::check(&mut case);
        refund::check(&mut case);
        settlement::check(&mut case);
        fallback::check(&mut case);
        match account.algorithm() {
            Some(Algorithm::FixedWindow(limit)) => fixed_window::check(&mut case, limit),
            Some(Algorithm::SlidingWindow(limit)) => span::check(&mut case, limit.blocks()),
            Some(Algorithm::SlidingLog(limit)) => span::check(&mut case, limit.window().get()),
            Some(Algorithm::TwoBucket(_)) => span::check(&mut case, 1),
            Some(Algorithm::TokenBucket(limit)) => rate::check(&mut case, limit),
            Some(Algorithm::Concurrency(limit)) => in_flight::check(&mut case, limit),
            // The limit's algorithm changed during the history, so windows before and after the
            // change cannot be compared.
            None => {}
        }
    }
    report
}

/// The limit and subject that are checked, with the context of the check.
struct Case<'a, 'h> {
    account: &'a Account<'h>,
    allowance: Allowance,
    clocks: &'a Clocks,
    cuts: &'a [Loss],
    report: &'a mut Report,
}

impl Case<'_, '_> {
    /// Returns the largest number of units that one window may admit: the capacity plus the
    /// allowance.
    fn most(&self) -> Units {
        Units::from(self.account.limit.capacity()) + self.lost() + self.overdraft()
    }

    /// Returns the units by which a settlement may exceed the limit.
    fn overdraft(&self) -> Units {
        Units::from(self.account.limit.reservation_terms().overdraft.max(self.allowance.overdraft))
    }

    fn lost(&self) -> Units {
        Units::from(self.allowance.lost)
    }

    /// Returns the units that nodes may have leased and not used.
    fn leased(&self) -> Units {
        match self.account.limit.mode() {
            LimitMode::Exact => 0,
            LimitMode::Leased => Units::from(self.allowance.leased),
        }
    }

    /// Returns whether a window may be lost completely in a cut. `opened` is the first answer that
    /// reports the window.
    fn is_cut(&self, opened: &Event<'_>) -> bool {
        self.cuts.iter().any(|cut| opened.answered >= cut.from && opened.issued <= cut.until)
    }

    fn violates(&mut self, rule: Rule, what: String, events: &[&Event<'_>]) {
        self.report.add(Violation {
            rule,
            limit: self.account.limit.name().to_owned(),
            subject: self.account.subject.to_string(),
            what,
            events: events.iter().map(ToString::to_string).collect(),
        });
    }
}

fn count(report: &mut Report, call: &Call) {
    report.calls += 1;
    let counter = match &call.outcome {
        Outcome::NotCarriedOut => &mut report.not_carried_out,
        Outcome::Unknown => &mut report.unknown,
        Outcome::Answered(readings) => match readings.source() {
            DecisionSource::Store
                if readings.iter().all(|reading| reading.admission == Admission::Now) =>
            {
                &mut report.admitted
            }
            DecisionSource::Store => &mut report.refused,
            DecisionSource::DenyCache => &mut report.remembered,
            DecisionSource::Overflow | DecisionSource::Fallback(_) | DecisionSource::Failure(_) => {
                &mut report.fallback
            }
        },
    };
    *counter += 1;
}
