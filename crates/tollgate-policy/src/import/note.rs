//! The result of an import for each construct.

use std::fmt;
use std::sync::Arc;

/// The result for one construct. Displayed, it is one line:
///
/// ```text
/// edge.yaml:12: approximated: value_to_metric: as detailed_metric
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file name.
    pub file: Arc<str>,
    /// The line number, from 1.
    pub line: usize,
    /// The result.
    pub conversion: Conversion,
    /// The construct.
    pub construct: String,
    /// How the policy expresses the key, or why it does not. Empty if there is nothing to add.
    pub how: String,
}

/// The result for a construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    /// The policy has the same meaning.
    Kept,
    /// The policy has nearly the same meaning.
    Approximated,
    /// The construct is left out.
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
