//! Notes about the conversion of each construct of an imported file.

use std::fmt;
use std::sync::Arc;

/// The result of the conversion of one construct. Its `Display` form is one line:
///
/// ```text
/// edge.yaml:12: not supported: value_to_metric: left out: no metric has a label with a value of a request
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The name of the imported file.
    pub file: Arc<str>,
    /// The line number, from 1.
    pub line: usize,
    /// Whether the policy keeps the meaning of the construct.
    pub conversion: Conversion,
    /// The construct in the imported file, such as a key.
    pub construct: String,
    /// The way in which the policy expresses the construct, or the reason why it does not. The text
    /// is empty if there is nothing to explain.
    pub how: String,
}

/// Whether a generated policy keeps the meaning of an imported construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    /// The policy keeps the meaning of the construct.
    Kept,
    /// The policy nearly keeps the meaning of the construct.
    Approximated,
    /// The policy leaves the construct out.
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
