//! A reply's bytes: what the step answers, checked number by number.

use tollgate_core::{Fit, Found, MAX_EXACT, Mark, Reading, Readings, Timestamp};

use crate::error::StepError;
use crate::job::Job;

const DECIDED: u8 = 0;
const LATE: u8 = 1;
const FULL: u8 = 1;

/// The server's clock when it answered, if it was asked for.
pub(crate) fn clock(reply: &[u8]) -> Option<Timestamp> {
    let mut rest = reply;
    take_byte(&mut rest)?;
    take_number(&mut rest).filter(|millis| *millis > 0).map(Timestamp::from_millis)
}

/// One answer for each of `jobs`. A reply that is not a step's is no answer to any of them.
pub(crate) fn decode(jobs: &[Job], reply: &[u8]) -> Vec<Result<Readings, StepError>> {
    answers(jobs, reply).unwrap_or_else(|| vec![Err(StepError::Corrupt); jobs.len()])
}

fn answers(jobs: &[Job], reply: &[u8]) -> Option<Vec<Result<Readings, StepError>>> {
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
    for job in jobs {
        // Was left out of the command.
        if job.asks.is_empty() {
            answers.push(Ok(Readings::new()));
            continue;
        }
        answers.push(match take_byte(&mut rest)? {
            DECIDED => {
                let readings = job.asks.iter().map(|_| take_reading(&mut rest));
                Ok(readings.collect::<Option<Readings>>()?)
            }
            FULL => Err(StepError::Full),
            _ => return None,
        });
    }
    rest.is_empty().then_some(answers)
}

fn take_reading(rest: &mut &[u8]) -> Option<Reading> {
    let flags = take_byte(rest)?;
    let again_at = Timestamp::from_millis(take_number(rest)?);
    let fit = |code| match code {
        0 => Some(Fit::Now),
        1 => Some(Fit::At(again_at)),
        2 => Some(Fit::Never),
        _ => None,
    };
    Some(Reading {
        fit: fit(flags & 3)?,
        again: fit(flags >> 2 & 3)?,
        used: take_number(rest)?,
        whole_at: Timestamp::from_millis(take_number(rest)?),
        mark: Mark(take_number(rest)?),
        given_back: take_number(rest)?,
        found: match flags >> 4 {
            0 => Found::Nothing,
            1 => Found::State,
            2 => Found::Discarded,
            _ => return None,
        },
    })
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
    use crate::job::{JobAsk, Op, Rule};

    fn job(asks: usize) -> Job {
        let rule = Rule { kind: 1, counts_refused: 0, quota: 1, window: 1, extra: 0, skew_max: 0 };
        let ask = JobAsk { rule, key: Box::default(), op: Op::Take { cost: 1 } };
        Job { now: Timestamp::EPOCH, asks: vec![ask; asks].into() }
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
        assert!(answers[1].as_ref().unwrap().is_empty());
        let number = 0x0007_0707_0707_0707;
        assert_eq!(answers[2].as_ref().map(|readings| readings[0].used), Ok(number));
        assert_eq!(clock(&bytes), Some(Timestamp::from_millis(9)));
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
            asks in prop::collection::vec(0_usize..4, 0..4),
        ) {
            let jobs: Vec<_> = asks.into_iter().map(job).collect();
            prop_assert_eq!(decode(&jobs, &bytes).len(), jobs.len());
        }
    }
}
