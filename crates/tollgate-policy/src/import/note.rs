//! What became of what a file said.

use std::fmt;
use std::sync::Arc;

/// What became of one construct. Displayed, it is one line:
///
/// ```text
/// edge.yaml:12: approximated: value_to_metric: as detailed_metric
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// What became of it.
    pub conversion: Conversion,
    /// What it was.
    pub construct: String,
    /// How it is written now, or why it is not; empty where there is nothing to say.
    pub how: String,
}

/// What became of a construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    /// It means the same.
    Kept,
    /// It means nearly the same.
    Approximated,
    /// It is left out.
    NotSupported,
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "kept",
            Self::Approximated => "approximated",
            Self::NotSupported => "not supported",
        })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, conversion, construct, how } = self;
        write!(f, "{file}:{line}: {conversion}: {construct}")?;
        if how.is_empty() { Ok(()) } else { write!(f, ": {how}") }
    }
}
