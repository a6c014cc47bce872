//! Positions in a file.

use granit_parser::Marker;

/// A position: its line, its column, and its length on that line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// From 1.
    pub(crate) line: usize,
    /// In characters, from 1.
    pub(crate) column: usize,
    /// In characters.
    pub(crate) width: usize,
}

impl Span {
    /// Returns the span from `start` to `end`, or to the end of its first line.
    pub(crate) fn new(start: Marker, end: Marker) -> Self {
        let width = if start.line() == end.line() {
            end.col().saturating_sub(start.col())
        } else {
            usize::MAX
        };
        Self { line: start.line(), column: start.col() + 1, width }
    }

    /// Returns an empty span at `marker`.
    pub(crate) fn point(marker: Marker) -> Self {
        Self::new(marker, marker)
    }
}
