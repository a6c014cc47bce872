//! Malformed lines: the reasons, their number, and the first few as examples.

use std::fmt;

/// The most malformed lines that are kept as examples.
const EXAMPLES_MAX: usize = 5;
/// The number of bytes of a malformed line that its example shows.
const EXCERPT_MAX: usize = 80;

/// The reason why a line is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The line is longer than [`LINE_MAX`](super::LINE_MAX).
    TooLong,
    /// The line has no time at its position in the format.
    NoTime,
    /// The time is not a date, or outside 1970 to 2^53 ms.
    BadTime,
    /// The line has fewer fields before the time than the format requires.
    NoClient,
    /// The line has no quoted request after the time, or a JSON object describes no request.
    NoRequest,
    /// The status is not three digits.
    BadStatus,
    /// The size is not a number.
    BadBytes,
    /// The line is not a JSON object, because a byte is not part of the expected token.
    Json {
        /// The index, from 0, of the byte in the line that is not part of the expected token.
        at: usize,
        /// The expected token.
        expected: &'static str,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "longer than {} bytes", super::LINE_MAX),
            Self::NoTime => f.write_str("no time"),
            Self::BadTime => f.write_str("the time is invalid or before 1970"),
            Self::NoClient => f.write_str("no client before the time"),
            Self::NoRequest => f.write_str("no request"),
            Self::BadStatus => f.write_str("the status is not three digits"),
            Self::BadBytes => f.write_str("the size is not a number"),
            Self::Json { at, expected } => write!(f, "not JSON: expected {expected} at byte {at}"),
        }
    }
}

/// An example of a malformed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Example {
    /// The log's name.
    pub(crate) log: String,
    /// The line's number, from 1.
    pub(crate) line: u64,
    /// The reason why the line is malformed.
    pub(crate) why: Malformed,
    /// The start of the line, escaped for terminals.
    pub(crate) excerpt: String,
}

/// Malformed lines and late entries of the logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParseIssues {
    /// The number of malformed lines.
    pub(crate) malformed: u64,
    /// The number of entries that came too late for the reorder buffer. Their times were changed to
    /// the time that their log had already reached.
    pub(crate) late: u64,
    /// The first malformed lines.
    pub(crate) examples: Vec<Example>,
}

impl ParseIssues {
    /// Counts one malformed line, and keeps the line as an example if there are few examples so
    /// far.
    pub(super) fn count(&mut self, log: &str, line: u64, text: &[u8], why: Malformed) {
        self.malformed += 1;
        if self.examples.len() < EXAMPLES_MAX {
            let log = log.to_owned();
            self.examples.push(Example { log, line, why, excerpt: excerpt(text) });
        }
    }
}

fn excerpt(text: &[u8]) -> String {
    let shown = &text[..text.len().min(EXCERPT_MAX)];
    let ellipsis = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{ellipsis}", shown.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_few_short_and_harmless() {
        let mut issues = ParseIssues::default();
        for line in 1..=1000 {
            issues.count("a.log", line, &[0x1b; 500], Malformed::NoTime);
        }
        assert_eq!(issues.malformed, 1000);
        assert_eq!(issues.examples.len(), EXAMPLES_MAX);
        assert!(issues.examples[0].excerpt.len() <= 4 * EXCERPT_MAX + "…".len());
        assert!(!issues.examples[0].excerpt.contains('\x1b'));
    }
}
