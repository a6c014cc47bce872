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
