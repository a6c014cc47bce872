//! A reusable buffer that a parser fills with the fields of a line.

use super::entry::{Entry, SLOTS, Slot, Span};
use super::malformed::Malformed;
use super::time::TIME_MAX;

/// The fields that a parser has found on a line so far. The buffer is reused, so a line needs only
/// the allocation of its entry.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) time: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) duration: Option<u32>,
    pub(super) status: u16,
    spans: [Span; SLOTS],
    text: Vec<u8>,
    overflowed: Overflow,
}

/// Whether the fields of a line are longer together than the index in a span can express.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Overflow {
    #[default]
    No,
    Yes,
}

impl Draft {
    /// Removes all fields, to parse the next line.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        *self = Self { text: std::mem::take(&mut self.text), ..Self::default() };
    }

    /// Sets a text field. The values `-` and the empty text mean that the line has no such field.
    pub(super) fn put(&mut self, slot: Slot, value: &[u8]) {
        self.put_with(slot, |text| text.extend_from_slice(value));
    }

    /// Sets a text field to the text that `write` appends.
    pub(super) fn put_with(&mut self, slot: Slot, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        write(&mut self.text);
        if &self.text[start..] == b"-" {
            self.text.truncate(start);
        }
        match (u16::try_from(start), u16::try_from(self.text.len())) {
            (Ok(start), Ok(end)) => self.spans[slot.index()] = (start, end),
            _ => self.overflowed = Overflow::Yes,
        }
    }

    /// Returns the entry for the line.
    pub(super) fn entry(&self) -> Result<Entry, Malformed> {
        let time = self.time.ok_or(Malformed::NoTime)?;
        if time > TIME_MAX {
            return Err(Malformed::BadTime);
        }
        if self.overflowed == Overflow::Yes {
            return Err(Malformed::TooLong);
        }
        Ok(Entry {
            time,
            bytes: self.bytes,
            duration: self.duration,
            status: self.status,
            spans: self.spans,
            text: Box::from(self.text.as_slice()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_an_absent_field_and_a_second_value_replaces_the_first() {
        let mut draft = Draft { time: Some(1), ..Draft::default() };
        draft.put(Slot::User, b"-");
        draft.put(Slot::Host, b"a");
        draft.put(Slot::Host, b"b");
        let entry = draft.entry().unwrap();
        assert_eq!(entry.user(), None);
        assert_eq!(entry.host(), Some(&b"b"[..]));
    }

    #[test]
    fn fields_that_together_pass_a_span_make_no_entry() {
        let mut draft = Draft { time: Some(1), ..Draft::default() };
        draft.put(Slot::User, &[b'x'; 60_000]);
        draft.put(Slot::Host, &[b'x'; 60_000]);
        assert_eq!(draft.entry(), Err(Malformed::TooLong));
        draft.clear();
        assert_eq!(draft.entry(), Err(Malformed::NoTime));
    }
}
