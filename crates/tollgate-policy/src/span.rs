//! Positions in policy files.

use granit_parser::Marker;

/// A position in a policy file: the file, the line, the column, and the length of the marked text
/// on that line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The number of the file. The policy file has the number 0. Included files are numbered from
    /// 1, in the order in which they are read.
    pub(crate) file: u16,
    /// The number of the line, from 1.
    pub(crate) line: usize,
    /// The number of the column in characters, from 1.
    pub(crate) column: usize,
    /// The number of marked characters.
    pub(crate) width: usize,
}

impl Span {
    /// The start of the policy file.
    pub(crate) const START: Self = Self { file: 0, line: 1, column: 1, width: 0 };

    /// Returns the span from `start` to `end` in the file with the number `file`. If `end` is on a
    /// later line, the span ends with the line of `start`.
    pub(crate) fn new(file: u16, start: Marker, end: Marker) -> Self {
        let width = if start.line() == end.line() {
            end.col().saturating_sub(start.col())
        } else {
            usize::MAX
        };
        Self { file, line: start.line(), column: start.col() + 1, width }
    }

    /// Returns an empty span at `marker` in the file with the number `file`.
    pub(crate) fn point(file: u16, marker: Marker) -> Self {
        Self::new(file, marker, marker)
    }
}
