//! Header fields as lines of HTTP/1.1, in memory that is reused for the next response.

use std::sync::Arc;

use tollgate_core::Limit;

use super::fields::{FieldValue, Fields};
use super::list::{push_policy, separate};
use super::push_number;

/// The header fields of a response as they are sent over HTTP/1.1: `name: value` and CRLF, in the
/// order in which they were written.
///
/// [`clear`](Self::clear) keeps the allocated memory for the next response.
#[derive(Clone, Debug, Default)]
pub struct HeaderLines {
    text: String,
    /// The [bits](bit) of the names in `text`. If the bit of a name is not set, no line has this
    /// name.
    names: u64,
    policies: Policies,
}

/// A cache of the list items that describe limits in `ratelimit-policy`. The item of a limit is the
/// same in every response.
#[derive(Clone, Debug, Default)]
struct Policies {
    items: Vec<(Arc<Limit>, Box<str>)>,
    /// The index of the cached item that the next new item replaces when the cache is full.
    oldest: usize,
}

/// The most items that [`Policies`] keeps. Most requests have fewer visible limits.
const MAX_POLICIES: usize = 16;

impl Policies {
    /// Returns the list item that describes `limit` in `ratelimit-policy`, from the cache if
    /// possible.
    fn of(&mut self, limit: &Arc<Limit>) -> &str {
        // The list keeps its limits alive, so no other limit can have the same address.
        let known = self.items.iter().position(|(known, _)| Arc::ptr_eq(known, limit));
        let index = known.unwrap_or_else(|| self.add(limit));
        &self.items[index].1
    }

    #[cold]
    fn add(&mut self, limit: &Arc<Limit>) -> usize {
        let mut item = String::new();
        push_policy(&mut item, limit);
        let item = (Arc::clone(limit), item.into_boxed_str());
        if self.items.len() < MAX_POLICIES {
            self.items.push(item);
            return self.items.len() - 1;
        }
        let index = self.oldest;
        self.items[index] = item;
        self.oldest = (index + 1) % MAX_POLICIES;
        index
    }
}

/// Returns one of 64 bits for a name. The names that the profiles set have different bits, except
/// that `ratelimit-reset` and `ratelimit-policy` share a bit.
#[inline(always)]
const fn bit(name: &str) -> u64 {
    let [.., before, last] = name.as_bytes() else { return 1 };
    1 << ((name.len() + *last as usize + 3 * *before as usize) % 64)
}

impl HeaderLines {
    /// Returns the lines. Each line ends with CRLF.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Removes all header lines. The memory is kept for the next response.
    pub fn clear(&mut self) {
        self.text.clear();
        self.names = 0;
    }

    #[inline(always)]
    fn line(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        self.names |= bit(name);
        self.text.push_str(name);
        self.text.push_str(": ");
        write(&mut self.text);
        self.text.push_str("\r\n");
    }

    #[inline(always)]
    fn remove(&mut self, name: &str) {
        if self.names & bit(name) != 0 {
            self.remove_lines(name);
        }
    }

    /// Removes the lines of the field `name`.
    #[cold]
    fn remove_lines(&mut self, name: &str) {
        let is_other =
            |line: &&str| line.strip_prefix(name).is_none_or(|rest| !rest.starts_with(": "));
        self.text = self.text.split_inclusive("\r\n").filter(is_other).collect();
    }
}

impl Fields for HeaderLines {
    #[inline(always)]
    fn set(&mut self, name: &'static str, value: FieldValue) {
        self.remove(name);
        self.add(name, value);
    }

    #[inline(always)]
    fn add(&mut self, name: &'static str, value: FieldValue) {
        self.line(name, |text| match value {
            FieldValue::Number(number) => push_number(text, number),
            FieldValue::Text(value) => text.push_str(&value),
        });
    }

    fn add_policies<'l>(
        &mut self,
        name: &'static str,
        limits: impl Iterator<Item = &'l Arc<Limit>>,
    ) {
        let mut policies = std::mem::take(&mut self.policies);
        self.line(name, |text| {
            let start = text.len();
            for limit in limits {
                separate(text, start);
                text.push_str(policies.of(limit));
            }
        });
        self.policies = policies;
    }

    #[inline(always)]
    fn set_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        self.remove(name);
        self.line(name, write);
    }

    #[inline(always)]
    fn add_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        self.line(name, write);
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::algo::{Anchor, FixedWindow};
    use tollgate_core::{Algorithm, Millis};

    use super::*;

    #[test]
    fn an_item_of_a_limit_is_the_same_whether_it_is_known_or_not() {
        let window = |quota| FixedWindow::new(quota, Millis::from_secs(60), Anchor::Calendar);
        let limit = |quota| {
            let limit = Limit::new("core", Algorithm::FixedWindow(window(quota).unwrap()));
            Arc::new(limit.unwrap())
        };
        let limits: Vec<_> = (1..=2 * MAX_POLICIES as u64).map(limit).collect();
        let (mut lines, mut fresh) = (HeaderLines::default(), HeaderLines::default());
        for two in limits.windows(2).chain(limits.windows(2)) {
            lines.clear();
            lines.add_policies("policies", two.iter());
            fresh.add_text("policies", |text| {
                push_policy(text, &two[0]);
                text.push_str(", ");
                push_policy(text, &two[1]);
            });
            assert_eq!(lines.as_str(), fresh.as_str());
            fresh.clear();
        }
        assert_eq!(lines.policies.items.len(), MAX_POLICIES);
    }

    #[test]
    fn a_field_that_is_set_twice_has_its_last_value() {
        let mut lines = HeaderLines::default();
        lines.set("a", FieldValue::Number(1));
        lines.add_text("list", |text| text.push('x'));
        lines.set("b", FieldValue::Text("two".into()));
        lines.add("list", FieldValue::Number(2));
        lines.set_text("a", |text| text.push_str("three"));
        assert_eq!(lines.as_str(), "list: x\r\nb: two\r\nlist: 2\r\na: three\r\n");
        // `li` is only the beginning of the name `list`, so the line of `list` stays.
        lines.set("li", FieldValue::Number(3));
        assert!(lines.as_str().contains("list: x\r\nb: two\r\n"));
        lines.set("list", FieldValue::Number(4));
        assert_eq!(lines.as_str(), "b: two\r\na: three\r\nli: 3\r\nlist: 4\r\n");
        lines.clear();
        lines.set("a", FieldValue::Number(u64::MAX));
        assert_eq!(lines.as_str(), "a: 18446744073709551615\r\n");
    }
}
