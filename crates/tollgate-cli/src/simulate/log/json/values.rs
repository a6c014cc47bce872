//! Maps the scalars of a JSON object to the fields of a request.

use std::borrow::Cow;

use super::super::combined::status_code;
use super::super::draft::Draft;
use super::super::entry::{SLOTS, Slot};
use super::super::fields::{Alias, Field};
use super::super::malformed::Malformed;
use super::super::request_line;
use super::super::time::{ClfClock, epoch, rfc3339, scaled};
use super::scanner::Scalar;

/// A draft in which several keys may set the same field. The value of the key with the best rank is
/// used, or the first value of several keys with the same rank.
#[derive(Debug)]
pub(super) struct Values<'d> {
    clock: &'d mut ClfClock,
    draft: &'d mut Draft,
    /// The rank of the key from which each field was set so far.
    ranks: [u8; SLOTS + 5],
    time: TimeField,
}

/// The reason why the line has no usable time, as long as no valid time was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeField {
    Absent,
    Unreadable,
}

const UNRANKED: u8 = u8::MAX;

impl<'d> Values<'d> {
    /// Creates a draft without values.
    pub(super) fn new(clock: &'d mut ClfClock, draft: &'d mut Draft) -> Self {
        Self { clock, draft, ranks: [UNRANKED; SLOTS + 5], time: TimeField::Absent }
    }

    /// Sets the field of `alias` to a scalar, unless the field already has a value with the same or
    /// a better rank.
    pub(super) fn set(&mut self, alias: Alias, scalar: Scalar<'_>) -> Result<(), Malformed> {
        if alias.rank >= self.ranks[index(alias.field)] {
            return Ok(());
        }
        let bytes = match scalar {
            Scalar::Text(text) => text.bytes(),
            Scalar::Number(number) => Cow::Borrowed(number),
            Scalar::Literal => return Ok(()),
        };
        if bytes.is_empty() || *bytes == *b"-" {
            return Ok(());
        }
        if self.fill(alias.field, &bytes)? == Filled::Yes {
            self.ranks[index(alias.field)] = alias.rank;
        }
        Ok(())
    }

    /// Checks that the values describe a request: the line has a valid time, and a request line, a
    /// client or a target.
    ///
    /// # Errors
    /// The reason why the line is malformed.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        if self.draft.time.is_none() && self.time == TimeField::Unreadable {
            return Err(Malformed::BadTime);
        }
        if self.draft.time.is_none() {
            return Err(Malformed::NoTime);
        }
        let requests = [Field::Request, Field::Text(Slot::Client), Field::Text(Slot::Target)];
        if requests.iter().all(|field| self.ranks[index(*field)] == UNRANKED) {
            return Err(Malformed::NoRequest);
        }
        Ok(())
    }

    fn fill(&mut self, field: Field, bytes: &[u8]) -> Result<Filled, Malformed> {
        match field {
            Field::Time => {
                let time =
                    epoch(bytes).or_else(|| rfc3339(bytes)).or_else(|| self.clock.parse(bytes));
                let Some(time) = time else {
                    self.time = TimeField::Unreadable;
                    return Ok(Filled::No);
                };
                self.draft.time = Some(time);
            }
            Field::Request => {
                let Some((method, target)) = request_line::split(bytes) else {
                    return Ok(Filled::Yes);
                };
                self.draft.put(Slot::Method, method);
                self.draft.put(Slot::Target, target);
            }
            Field::Status => self.draft.status = status(bytes).ok_or(Malformed::BadStatus)?,
            Field::Bytes => {
                let Some(size) = scaled(bytes, 0) else { return Ok(Filled::No) };
                self.draft.bytes = Some(size);
            }
            Field::Duration { power } => {
                let Some(millis) = scaled(bytes, 3 - i32::from(power)) else {
                    return Ok(Filled::No);
                };
                self.draft.duration = Some(u32::try_from(millis).unwrap_or(u32::MAX));
            }
            Field::Text(slot) => self.draft.put(slot, bytes),
        }
        Ok(Filled::Yes)
    }
}

/// Whether a value could be used for its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    No,
    Yes,
}

/// Parses three digits, or the 0 that servers write if no response was sent.
fn status(text: &[u8]) -> Option<u16> {
    status_code(text).or_else(|| (text == b"0").then_some(0))
}

fn index(field: Field) -> usize {
    match field {
        Field::Text(slot) => slot.index(),
        Field::Time => SLOTS,
        Field::Request => SLOTS + 1,
        Field::Status => SLOTS + 2,
        Field::Bytes => SLOTS + 3,
        Field::Duration { .. } => SLOTS + 4,
    }
}
