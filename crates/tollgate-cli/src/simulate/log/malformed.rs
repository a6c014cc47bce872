//! Lines that are no log entry: why, how many, and the first few as examples.

use std::fmt;

/// Examples of malformed lines that are kept.
const EXAMPLES_MAX: usize = 5;
/// Bytes of a malformed line that its example shows.
const EXCERPT_MAX: usize = 80;

/// Why a line makes no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The line is longer than [`LINE_MAX`](super::LINE_MAX).
    TooLong,
    /// No time was found where the format has it.
    NoTime,
    /// The time is not a date, or outside 1970 to 2^53 ms.
    BadTime,
    /// Fewer fields than the format has stand before the time.
    NoClient,
    /// No quoted request follows the time, or a JSON object tells of none.
    NoRequest,
    /// The status is not three digits.
    BadStatus,
    /// The size is not a number.
    BadBytes,
    /// Not a JSON object: what was expected, at which byte of the line (from 0).
    Json {
        /// The byte's index in the line.
        at: usize,
        /// What should stand there.
        expected: &'static str,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "longer than {} bytes", super::LINE_MAX),
            Self::NoTime => f.write_str("no time"),
            Self::BadTime => f.write_str("the time is not one from 1970 on"),
            Self::NoClient => f.write_str("no client before the time"),
            Self::NoRequest => f.write_str("no request"),
            Self::BadStatus => f.write_str("the status is not three digits"),
            Self::BadBytes => f.write_str("the size is not a number"),
            Self::Json { at, expected } => write!(f, "not JSON: expected {expected} at byte {at}"),
        }
    }
}

/// One malformed line, to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Example {
    /// The log's name.
    pub(crate) log: String,
    /// The line's number, from 1.
    pub(crate) line: u64,
    /// What is wrong.
    pub(crate) why: Malformed,
    /// The start of the line, escaped so that a terminal is safe from it.
    pub(crate) excerpt: String,
}

/// What reading met besides entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParseIssues {
    /// Malformed lines.
    pub(crate) malformed: u64,
    /// Entries that came later than the reorder buffer could wait, and were moved to the time already reached.
    pub(crate) late: u64,
    /// The first malformed lines.
    pub(crate) examples: Vec<Example>,
}

impl ParseIssues {
    /// Counts one malformed line.
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
