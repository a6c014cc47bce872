//! Decodes replies, and validates every number in them.

mod cell;
mod window;

use tollgate_core::{
    Admission, ChargePosition, MAX_EXACT, Reading, Readings, StoredState, Timestamp,
};

use self::cell::take_cell;
use self::window::{Outcome, Window};
use crate::answer::Answer;
use crate::error::StepError;
use crate::job::{Job, Op};

const DECIDED: u8 = 0;
const LATE: u8 = 1;
const FULL: u8 = 1;
const REFUSED: u8 = 2;
const REPEATED: u8 = 3;
/// The flag of a reading that is followed by two more numbers: its reserved units, and the units
/// that a settlement added.
const MORE: u8 = 1;

/// Returns the time that the server's clock showed when the server answered. The reply contains
/// this time only if the command requested it.
pub(crate) fn clock(reply: &[u8]) -> Option<Timestamp> {
    let mut rest = reply;
    take_byte(&mut rest)?;
    take_number(&mut rest).filter(|millis| *millis > 0).map(Timestamp::from_millis)
}

/// Decodes the answers to `jobs`, one answer for each job. If the reply is invalid, every answer is
/// [`StepError::Corrupt`].
pub(crate) fn decode(jobs: &[Job], reply: &[u8]) -> Vec<Result<Answer, StepError>> {
    answers(jobs, reply).unwrap_or_else(|| vec![Err(StepError::Corrupt); jobs.len()])
}

fn answers(jobs: &[Job], reply: &[u8]) -> Option<Vec<Result<Answer, StepError>>> {
    let mut rest = reply;
    let status = take_byte(&mut rest)?;
    take_number(&mut rest)?;
    if status == LATE && rest.is_empty() {
        return Some(vec![Err(StepError::Late); jobs.len()]);
    }
    if status != DECIDED {
        return None;
    }
    let mut answers = Vec::with_capacity(jobs.len());
    let mut run = Run::default();
    for job in jobs {
        // A job without charges was left out of the command.
        if job.charges.is_empty() {
            answers.push(Ok(Answer::Readings(Readings::new())));
            continue;
        }
        if run.jobs == 0 && rest.first() == Some(&REPEATED) {
            run = Run::take(&mut rest)?;
        }
        answers.push(if run.jobs > 0 {
            Ok(Answer::Readings(run.next(job)?))
        } else {
            answer(job, &mut rest)?
        });
    }
    (rest.is_empty() && run.jobs == 0).then_some(answers)
}

/// Decodes the answer to a job that shares its answer with no other job. Returns `None` if `rest`
/// does not start with a valid answer.
fn answer(job: &Job, rest: &mut &[u8]) -> Option<Result<Answer, StepError>> {
    if Window::begins_with(*rest.first()?) {
        return take_window_readings(job, rest, Outcome::Admitted).map(Answer::Readings).map(Ok);
    }
    match take_byte(rest)? {
        DECIDED => take_decided(job, rest).map(Ok),
        REFUSED => take_window_readings(job, rest, Outcome::Refused).map(Answer::Readings).map(Ok),
        FULL => Some(Err(StepError::Full)),
        _ => None,
    }
}

/// Decodes the answers to the charges of a job. A job contains either only reads of cells, only
/// joins of cells, or only other operations. Returns `None` if `rest` does not start with valid
/// answers.
fn take_decided(job: &Job, rest: &mut &[u8]) -> Option<Answer> {
    let mut charges = job.charges.iter();
    match job.charges.first()?.op {
        Op::Cell => charges
            .map(|operation| take_cell(operation, rest))
            .collect::<Option<_>>()
            .map(Answer::CellTransfer),
        Op::Join { .. } => charges
            .all(|operation| matches!(operation.op, Op::Join { .. }))
            .then_some(Answer::Joined),
        _ => charges.map(|_| take_reading(rest)).collect::<Option<_>>().map(Answer::Readings),
    }
}

fn take_window_readings(job: &Job, rest: &mut &[u8], outcome: Outcome) -> Option<Readings> {
    let reading = |operation| Some(Window::take(rest)?.reading(operation, outcome)?.0);
    let readings: Readings = job.charges.iter().map(reading).collect::<Option<_>>()?;
    // A refused job must have at least one reading that refuses.
    (outcome == Outcome::Admitted || !readings.all_admitted()).then_some(readings)
}

/// The remaining part of an answer that several jobs share. Jobs share an answer if they charge the
/// same window one after the other.
#[derive(Default)]
struct Run {
    jobs: u64,
    admitted: u64,
    window: Option<Window>,
}

impl Run {
    fn take(rest: &mut &[u8]) -> Option<Self> {
        take_byte(rest)?;
        let (jobs, admitted) = (take_number(rest)?, take_number(rest)?);
        let window = Some(Window::take(rest)?);
        (jobs > 0 && admitted <= jobs).then_some(Self { jobs, admitted, window })
    }

    fn next(&mut self, job: &Job) -> Option<Readings> {
        let [operation] = &*job.charges else { return None };
        let outcome = if self.admitted > 0 { Outcome::Admitted } else { Outcome::Refused };
        let (reading, after) = self.window?.reading(operation, outcome)?;
        if outcome == Outcome::Refused && reading.admission == Admission::Now {
            return None;
        }
        let is_counted = u64::from(outcome == Outcome::Admitted);
        (self.jobs, self.admitted) = (self.jobs - 1, self.admitted - is_counted);
        self.window = Some(after);
        Some(Readings::one(reading))
    }
}

fn take_reading(rest: &mut &[u8]) -> Option<Reading> {
    let flags = take_byte(rest)?;
    let again_at = Timestamp::from_millis(take_number(rest)?);
    let admission = |code| match code {
        0 => Some(Admission::Now),
        1 => Some(Admission::At(again_at)),
        2 => Some(Admission::Never),
        _ => None,
    };
    let reading = Reading {
        admission: admission(flags & 3)?,
        fits_again: admission(flags >> 2 & 3)?,
        used: take_number(rest)?,
        full_reset_at: Timestamp::from_millis(take_number(rest)?),
        position: ChargePosition(take_number(rest)?),
        refunded: take_number(rest)?,
        added: 0,
        reserved: 0,
        found: match flags >> 4 & 3 {
            0 => StoredState::Missing,
            1 => StoredState::Present,
            2 => StoredState::Discarded,
            _ => return None,
        },
    };
    match flags >> 6 {
        0 => Some(reading),
        MORE => {
            Some(Reading { reserved: take_number(rest)?, added: take_number(rest)?, ..reading })
        }
        _ => None,
    }
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (byte, after) = rest.split_first()?;
    *rest = after;
    Some(*byte)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_at_checked(7)?;
    *rest = after;
    let mut number = [0; 8];
    number[..7].copy_from_slice(bytes);
    Some(u64::from_le_bytes(number)).filter(|number| *number <= MAX_EXACT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::job::{JobCharge, Op, Rule};

    fn job(charges: usize) -> Job {
        let rule = Rule { kind: 1, counts_refused: 0, quota: 1, window: 1, extra: 0, skew_max: 0 };
        let operation =
            JobCharge { rule, schedule: None, key: Box::default(), op: Op::Charge { cost: 1 } };
        Job { now: Timestamp::EPOCH, tolerance: None, charges: vec![operation; charges].into() }
    }

    fn reply(status: u8, body: &[u8]) -> Vec<u8> {
        [&[status, 9, 0, 0, 0, 0, 0, 0], body].concat()
    }

    #[test]
    fn each_job_has_the_answer_in_its_place() {
        let jobs = [job(1), job(0), job(1)];
        let reading = [&[0, 0x11][..], &[7; 35]].concat();
        let bytes = reply(DECIDED, &[&[FULL][..], &reading].concat());
        let answers = decode(&jobs, &bytes);
        assert_eq!(answers[0].as_ref().unwrap_err(), &StepError::Full);
        let readings = |index: usize| answers[index].clone().unwrap().into_readings().unwrap();
        assert!(readings(1).is_empty());
        assert_eq!(readings(2)[0].used, 0x0007_0707_0707_0707);
        assert_eq!(clock(&bytes), Some(Timestamp::from_millis(9)));
    }

    #[test]
    fn windows_are_the_answer_to_jobs_that_took_from_open_ones() {
        let window = b"1700000000123000000";
        let twice = [&[REPEATED, 3, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], window].concat();
        let full = b"1700000000123000001";
        let bytes = reply(DECIDED, &[&window[..], &[REFUSED], full, &twice].concat());
        let impossible = reply(DECIDED, &[&[REFUSED], &window[..]].concat());
        assert_eq!(decode(&[job(1)], &impossible)[0].as_ref().unwrap_err(), &StepError::Corrupt);
        // The fourth job has no charges. The jobs before and after it share an answer.
        let jobs = [job(1), job(1), job(1), job(0), job(1), job(1)];
        let used: Vec<_> = decode(&jobs, &bytes)
            .into_iter()
            .map(|answer| answer.unwrap().into_readings().unwrap())
            .map(|readings| readings.first().map(|reading| (reading.used, reading.admission)))
            .collect();
        let at = Admission::At(Timestamp::from_millis(1_700_000_000_123));
        let (first, refused) = (Some((1, Admission::Now)), Some((1, at)));
        assert_eq!(used, [first, refused, first, None, refused, refused]);
        // These lists have fewer or more jobs than the answer contains.
        for jobs in [&jobs[..5], &[job(1), job(1), job(1), job(1), job(1), job(1)]] {
            assert_eq!(decode(jobs, &bytes)[0].as_ref().unwrap_err(), &StepError::Corrupt);
        }
    }

    #[test]
    fn a_late_command_has_one_answer_for_all() {
        for answer in decode(&[job(1), job(2)], &reply(LATE, &[])) {
            assert_eq!(answer.unwrap_err(), StepError::Late);
        }
    }

    #[test]
    fn a_reply_that_is_cut_short_or_too_long_is_no_answer() {
        let jobs = [job(1)];
        let whole = reply(DECIDED, &[&[0, 0x11][..], &[1; 35]].concat());
        assert!(decode(&jobs, &whole)[0].is_ok());
        for length in 0..whole.len() {
            assert_eq!(
                decode(&jobs, &whole[..length])[0].as_ref().unwrap_err(),
                &StepError::Corrupt
            );
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(decode(&jobs, &longer)[0].as_ref().unwrap_err(), &StepError::Corrupt);
    }

    proptest! {
        #[test]
        fn any_bytes_give_one_answer_a_job(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            charges in prop::collection::vec(0_usize..4, 0..4),
        ) {
            let jobs: Vec<_> = charges.into_iter().map(job).collect();
            prop_assert_eq!(decode(&jobs, &bytes).len(), jobs.len());
        }
    }
}
