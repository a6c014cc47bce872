//! Header fields as lines of HTTP/1.1, in memory that is reused for the next response.

use std::sync::Arc;

use tollgate_core::{Evaluation, Limit, LimitStatus, Timestamp};

use super::field_value::FieldValue;
use super::fields::Fields;
use super::list::{push_integer, push_name, push_policy, separate};
use super::{github, ietf, push_number, seconds_to_reset};

/// The header fields of a response as they are sent over HTTP/1.1: `name: value` and CRLF, in the
/// order in which they were written.
///
/// [`clear`](Self::clear) keeps the allocated memory for the next response.
#[derive(Clone, Debug, Default)]
pub struct HeaderLines {
    text: String,
    /// One bit for each field name in `text`: see [`bit`]. If the bit of a name is 0, no line has
    /// this name.
    names: u64,
    texts: LimitTexts,
}

/// The parts of the header fields that are the same in every response about a limit.
#[derive(Clone, Debug)]
struct LimitText {
    limit: Arc<Limit>,
    /// The line `x-ratelimit-limit`, without its end.
    capacity: Box<str>,
    /// The line `x-ratelimit-limit`, and the line `x-ratelimit-remaining` before its value.
    capacity_and_remaining: Box<str>,
    /// The end of the line before `x-ratelimit-resource`, and the whole line
    /// `x-ratelimit-resource`.
    resource: Box<str>,
    /// The limit's item in the list `ratelimit-policy`.
    policy: Box<str>,
    /// The beginning of the limit's item in the list `ratelimit`: everything before the remaining
    /// units.
    status: Box<str>,
    /// The line `ratelimit-policy` and the beginning of the line `ratelimit`, if no other limit is
    /// in these lists.
    policy_and_status: Box<str>,
}

/// The texts of the limits that were written last.
#[derive(Clone, Debug, Default)]
struct LimitTexts {
    texts: Vec<LimitText>,
    /// The index of the text that the text of a further limit replaces.
    oldest: usize,
}

/// The most items of [`LimitTexts`]: more than most requests have visible limits.
const MAX_TEXTS: usize = 16;

impl LimitText {
    fn new(limit: &Arc<Limit>) -> Self {
        let (mut policy, mut status) = (String::new(), String::new());
        push_policy(&mut policy, limit);
        push_name(&mut status, limit.name());
        status.push_str(ietf::REMAINING);
        let capacity = format!("{}{SEPARATOR}{}", github::LIMIT, limit.capacity());
        Self {
            limit: Arc::clone(limit),
            capacity_and_remaining: [&*capacity, github::AFTER_LINE_REMAINING].concat().into(),
            capacity: capacity.into(),
            resource: [github::AFTER_LINE_RESOURCE, limit.resource(), END].concat().into(),
            policy_and_status: [ietf::BEFORE_POLICY, &policy, ietf::AFTER_POLICY, &status]
                .concat()
                .into(),
            policy: policy.into(),
            status: status.into(),
        }
    }
}

impl LimitTexts {
    /// Returns the text of `limit`.
    #[inline]
    fn of(&mut self, limit: &Arc<Limit>) -> &LimitText {
        // The list keeps its limits alive, so no other limit can have the same address.
        let known = self.texts.iter().position(|known| Arc::ptr_eq(&known.limit, limit));
        let index = known.unwrap_or_else(|| self.add(limit));
        &self.texts[index]
    }

    #[cold]
    fn add(&mut self, limit: &Arc<Limit>) -> usize {
        let text = LimitText::new(limit);
        if self.texts.len() < MAX_TEXTS {
            self.texts.push(text);
            return self.texts.len() - 1;
        }
        let index = self.oldest;
        self.texts[index] = text;
        self.oldest = (index + 1) % MAX_TEXTS;
        index
    }
}

/// The text between the name and the value of a field.
const SEPARATOR: &str = ": ";
/// The end of a line.
const END: &str = "\r\n";

/// Returns one of 64 bits for a name. The names that the profiles set have different bits, except
/// that `ratelimit-reset` and `ratelimit-policy` share a bit.
#[inline(always)]
const fn bit(name: &str) -> u64 {
    let [.., before, last] = name.as_bytes() else { return 1 };
    1 << ((name.len() + *last as usize + 3 * *before as usize) % 64)
}

/// The bits of the fields that the profile `github` writes: see [`bit`].
const GITHUB: u64 = bit(github::LIMIT)
    | bit(github::REMAINING)
    | bit(github::USED)
    | bit(github::RESET)
    | bit(github::RESOURCE);
/// The bits of the fields that the profile `ietf` writes: see [`bit`].
const IETF: u64 = bit(ietf::POLICY) | bit(ietf::STATUS);

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

    /// Removes the lines of the field `name`.
    #[cold]
    fn remove_lines(&mut self, name: &str) {
        let is_other =
            |line: &&str| line.strip_prefix(name).is_none_or(|rest| !rest.starts_with(SEPARATOR));
        self.text = self.text.split_inclusive(END).filter(is_other).collect();
    }
}

impl Fields for HeaderLines {
    fn set(&mut self, name: &'static str, value: FieldValue) {
        if self.names & bit(name) != 0 {
            self.remove_lines(name);
        }
        self.add(name, value);
    }

    fn add(&mut self, name: &'static str, value: FieldValue) {
        self.names |= bit(name);
        self.text.extend([name, SEPARATOR]);
        match value {
            FieldValue::Number(number) => push_number(&mut self.text, number),
            FieldValue::Text(value) => self.text.push_str(&value),
        }
        self.text.push_str(END);
    }

    #[inline]
    fn set_github(&mut self, status: &LimitStatus, with_usage: bool) {
        if self.names & GITHUB != 0 {
            github::each(status, with_usage, |name, value| self.set(name, value));
            return;
        }
        let Self { text, names, texts } = self;
        *names |= GITHUB;
        let known = texts.of(&status.limit);
        if with_usage {
            text.push_str(&known.capacity_and_remaining);
            push_number(text, status.remaining);
            text.push_str(github::AFTER_LINE_USED);
            push_number(text, status.used);
        } else {
            text.push_str(&known.capacity);
        }
        text.push_str(github::AFTER_LINE_RESET);
        push_number(text, status.resets_at.as_secs_ceil());
        text.push_str(&known.resource);
    }

    #[inline]
    fn add_ietf(&mut self, evaluation: &Evaluation) {
        let Self { text, names, texts } = self;
        *names |= IETF;
        let mut visible = ietf::visible(evaluation);
        if let (Some(status), None) = (visible.next(), visible.next()) {
            text.push_str(&texts.of(&status.limit).policy_and_status);
            push_usage(text, status, evaluation.now);
            text.push_str(END);
            return;
        }
        text.push_str(ietf::BEFORE_POLICY);
        let start = text.len();
        for status in ietf::visible(evaluation) {
            separate(text, start);
            text.push_str(&texts.of(&status.limit).policy);
        }
        text.push_str(ietf::AFTER_POLICY);
        let start = text.len();
        for status in ietf::visible(evaluation) {
            separate(text, start);
            text.push_str(&texts.of(&status.limit).status);
            push_usage(text, status, evaluation.now);
        }
        text.push_str(END);
    }
}

/// Appends the rest of a limit's item in `ratelimit`: the remaining units and the seconds to the
/// reset.
#[inline]
fn push_usage(text: &mut String, status: &LimitStatus, now: Timestamp) {
    push_integer(text, status.remaining);
    text.push_str(ietf::RESET);
    push_integer(text, seconds_to_reset(status, now));
}

#[cfg(test)]
mod tests {
    use tollgate_core::algo::{Anchor, FixedWindow};
    use tollgate_core::{Admission, Algorithm, Cost, Millis, Reading, Visibility};

    use super::*;

    fn evaluation(quotas: &[u64]) -> Evaluation {
        let now = Timestamp::from_millis(1_700_000_000_500);
        let status = |quota: &u64| {
            let window = FixedWindow::new(*quota, Millis::from_secs(60), Anchor::Calendar).unwrap();
            let limit = Limit::new("core", Algorithm::FixedWindow(window)).unwrap();
            let full_reset_at = now.after(Millis::from_secs(*quota));
            let reading = Reading { used: *quota / 2, full_reset_at, ..Reading::default() };
            LimitStatus::new(Arc::new(limit), Cost::ONE, &reading)
        };
        Evaluation { now, statuses: quotas.iter().map(status).collect() }
    }

    /// Writes `evaluation` into `lines` twice: with the texts of limits, and field by field.
    fn assert_same(lines: &mut HeaderLines, evaluation: &Evaluation, with_usage: bool) {
        let mut each = HeaderLines::default();
        lines.clear();
        for status in &evaluation.statuses {
            lines.set_github(status, with_usage);
            github::each(status, with_usage, |name, value| each.set(name, value));
        }
        lines.add_ietf(evaluation);
        ietf::each(evaluation, |name, list| each.add(name, FieldValue::Text(list)));
        assert_eq!((lines.as_str(), lines.names), (each.as_str(), each.names));
    }

    #[test]
    fn fields_of_a_limit_are_the_same_whether_its_texts_are_known_or_not() {
        let limits: Vec<_> = (1..=2 * MAX_TEXTS as u64).map(|quota| 7 * quota * quota).collect();
        let whole = evaluation(&limits);
        let mut lines = HeaderLines::default();
        for two in whole.statuses.windows(2).chain(whole.statuses.windows(2)) {
            let evaluation = Evaluation { now: whole.now, statuses: two.to_vec() };
            assert_same(&mut lines, &evaluation, true);
            let evaluation = Evaluation { now: whole.now, statuses: two[..1].to_vec() };
            assert_same(&mut lines, &evaluation, true);
        }
        assert_eq!(lines.texts.texts.len(), MAX_TEXTS);
    }

    #[test]
    fn the_only_visible_limit_has_the_same_fields_beside_a_hidden_limit() {
        let mut evaluation = evaluation(&[60, 90, 120]);
        let mut lines = HeaderLines::default();
        for hidden in [vec![1, 2], vec![0, 2], vec![0, 1], vec![1], vec![0, 1, 2], vec![]] {
            for (index, status) in evaluation.statuses.iter_mut().enumerate() {
                let visibility = match hidden.contains(&index) {
                    true => Visibility::Hidden,
                    false => Visibility::Visible,
                };
                let limit = Limit::clone(&status.limit).with_visibility(visibility);
                status.limit = Arc::new(limit);
            }
            assert_same(&mut lines, &evaluation, true);
        }
    }

    #[test]
    fn fields_without_usage_are_three() {
        let mut evaluation = evaluation(&[60]);
        evaluation.statuses[0].admission = Admission::Never;
        let mut lines = HeaderLines::default();
        lines.set_github(&evaluation.statuses[0], false);
        let expected = "x-ratelimit-limit: 60\r\nx-ratelimit-reset: 1700000061\r\n\
                        x-ratelimit-resource: core\r\n";
        assert_eq!(lines.as_str(), expected);
    }

    #[test]
    fn a_field_that_is_set_twice_has_its_last_value() {
        let mut lines = HeaderLines::default();
        let text = |text: &str| FieldValue::Text(text.into());
        lines.set("a", FieldValue::Number(1));
        lines.add("list", text("x"));
        lines.set("b", text("two"));
        lines.add("list", FieldValue::Number(2));
        lines.set("a", text("three"));
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
