//! Decodes the step's reply for an open fixed window. The reply contains the state of the window
//! before the job. This module computes the state after each charge of the job.

use tollgate_core::{Admission, ChargePosition, Reading, StoredState, Timestamp};

use super::{take_byte, take_number};
use crate::job::{JobCharge, Op};

/// The number of digits of an encoded window. The first thirteen digits are the time of the reset,
/// and the last six digits are the used units.
const DIGITS: usize = 19;
const DIGITS_OF_USED: u64 = 1_000_000;

/// The outcome of a job's charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Admitted,
    Refused,
}

/// The state of an open fixed window before a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    resets_at: Timestamp,
    used: u64,
}

impl Window {
    /// Returns whether the text of a window can begin with `byte`.
    pub(super) const fn begins_with(byte: u8) -> bool {
        matches!(byte, b'+' | b'1'..=b'9')
    }

    /// Decodes the window at the front of `rest`. Earlier jobs of the same command may have charged
    /// the window since the command read it. The units of these jobs then come before the digits of
    /// the window. Returns `None` if `rest` does not start with a window.
    pub(super) fn take(rest: &mut &[u8]) -> Option<Self> {
        let mut counted = 0;
        if rest.first() == Some(&b'+') {
            take_byte(rest)?;
            counted = take_number(rest)?;
        }
        let (digits, after) = rest.split_at_checked(DIGITS)?;
        *rest = after;
        let mut number = 0;
        for digit in digits {
            // A number of nineteen digits fits into 64 bits.
            number = number * 10 + u64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        }
        let resets_at = Timestamp::from_millis(number / DIGITS_OF_USED);
        Some(Self { resets_at, used: number % DIGITS_OF_USED + counted })
    }

    /// Returns the reading of a charge, and the window after the charge. Returns `None` if no step
    /// could have sent such an answer.
    pub(super) fn reading(self, charge: &JobCharge, outcome: Outcome) -> Option<(Reading, Self)> {
        let Op::Charge { cost } = charge.op else { return None };
        let before = self.admission(charge, cost);
        let after = match outcome {
            Outcome::Refused => self,
            Outcome::Admitted if before != Admission::Now => return None,
            Outcome::Admitted => Self { used: self.used + cost, ..self },
        };
        let reading = Reading {
            admission: before,
            fits_again: after.admission(charge, cost),
            used: after.used,
            full_reset_at: self.resets_at,
            position: ChargePosition(self.resets_at.as_millis()),
            refunded: 0,
            added: 0,
            reserved: 0,
            found: StoredState::Present,
        };
        Some((reading, after))
    }

    fn admission(self, charge: &JobCharge, cost: u64) -> Admission {
        match charge.rule.quota.checked_sub(cost) {
            None => Admission::Never,
            Some(most) if self.used <= most => Admission::Now,
            Some(_) => Admission::At(self.resets_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Rule;

    fn charge(quota: u64, cost: u64) -> JobCharge {
        let rule = Rule { kind: 1, counts_refused: 0, quota, window: 1, extra: 0, skew_max: 0 };
        JobCharge { rule, schedule: None, key: Box::default(), op: Op::Charge { cost } }
    }

    fn window(mut text: &[u8]) -> Option<Window> {
        let window = Window::take(&mut text)?;
        text.is_empty().then_some(window)
    }

    #[test]
    fn a_window_is_digits_behind_what_was_counted_since() {
        let found = window(b"1700000000123000042").unwrap();
        assert_eq!((found.resets_at.as_millis(), found.used), (1_700_000_000_123, 42));
        let counted = window(b"+\x03\0\0\0\0\0\x001700000000123000042").unwrap();
        assert_eq!((counted.resets_at, counted.used), (found.resets_at, 45));
        for junk in [&b"170000000012300004"[..], b"17000000001230000420", b"1700000000123 00042"] {
            assert!(window(junk).is_none());
        }
    }

    #[test]
    fn a_take_counts_if_it_was_admitted_and_the_same_fits_while_there_is_room() {
        let found = window(b"1700000000123000042").unwrap();
        let at = Admission::At(found.resets_at);
        for (quota, again) in [(44, Admission::Now), (43, at)] {
            let (reading, after) = found.reading(&charge(quota, 1), Outcome::Admitted).unwrap();
            assert_eq!(
                (reading.admission, reading.fits_again, reading.used),
                (Admission::Now, again, 43)
            );
            assert_eq!(after.used, 43);
        }
        for (quota, cost, admission) in
            [(42, 1, at), (42, 43, Admission::Never), (43, 1, Admission::Now)]
        {
            let (reading, after) = found.reading(&charge(quota, cost), Outcome::Refused).unwrap();
            assert_eq!(
                (reading.admission, reading.fits_again, reading.used),
                (admission, admission, 42)
            );
            assert_eq!(after.used, 42);
        }
        assert!(found.reading(&charge(42, 1), Outcome::Admitted).is_none());
    }
}
