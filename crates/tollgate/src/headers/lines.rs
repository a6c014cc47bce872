//! Header fields as lines of HTTP/1.1, in memory that is used again.

use super::fields::{FieldValue, Fields};
use super::push_number;

/// The header fields of a response as they are sent over HTTP/1.1: `name: value` and CRLF, in the
/// order in which they were written.
///
/// [`clear`](Self::clear) keeps its memory for the next response.
#[derive(Clone, Debug, Default)]
pub struct HeaderLines {
    text: String,
    /// The names of the lines, and where they begin.
    begins: Vec<(&'static str, usize)>,
}

impl HeaderLines {
    /// Returns the lines. Each of them ends with CRLF.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Removes all lines.
    pub fn clear(&mut self) {
        self.text.clear();
        self.begins.clear();
    }

    fn line(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        self.begins.push((name, self.text.len()));
        self.text.push_str(name);
        self.text.push_str(": ");
        write(&mut self.text);
        self.text.push_str("\r\n");
    }

    /// Removes the lines of `name`.
    fn remove(&mut self, name: &str) {
        while let Some(index) = self.begins.iter().position(|(other, _)| *other == name) {
            let (_, begin) = self.begins.remove(index);
            let end = self.begins.get(index).map_or(self.text.len(), |(_, next)| *next);
            self.text.drain(begin..end);
            for (_, later) in &mut self.begins[index..] {
                *later -= end - begin;
            }
        }
    }
}

impl Fields for HeaderLines {
    fn set(&mut self, name: &'static str, value: FieldValue) {
        self.remove(name);
        self.add(name, value);
    }

    fn add(&mut self, name: &'static str, value: FieldValue) {
        self.line(name, |text| match value {
            FieldValue::Number(number) => push_number(text, number),
            FieldValue::Text(value) => text.push_str(&value),
        });
    }

    fn set_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        self.remove(name);
        self.line(name, write);
    }

    fn add_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        self.line(name, write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_set_twice_has_its_last_value() {
        let mut lines = HeaderLines::default();
        lines.set("a", FieldValue::Number(1));
        lines.add_text("list", |text| text.push('x'));
        lines.set("b", FieldValue::Text("two".into()));
        lines.add("list", FieldValue::Number(2));
        lines.set_text("a", |text| text.push_str("three"));
        assert_eq!(lines.as_str(), "list: x\r\nb: two\r\nlist: 2\r\na: three\r\n");
        lines.clear();
        lines.set("a", FieldValue::Number(u64::MAX));
        assert_eq!(lines.as_str(), "a: 18446744073709551615\r\n");
    }
}
