//! What is said of a policy file, with its place in it.

use std::fmt;
use std::sync::Arc;

/// The most characters of a line that are shown.
pub(crate) const MAX_EXCERPT: usize = 160;

/// One thing to say of a place in a policy file.
///
/// Displayed, it shows file, line and column, what is wrong, the line with the place marked, and
/// what would be right:
///
/// ```text
/// shop.yaml:4:14: unknown limit "cor"
///   |
/// 4 |     limits: [cor]
///   |              ^^^ did you mean "core"?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub(crate) file: Arc<str>,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) excerpt: Excerpt,
}

/// A piece of a line, and which characters of it are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    pub(crate) start: usize,
    pub(crate) width: usize,
}

impl Finding {
    /// The name of the file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// What is wrong, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What would be right, in one line, where it can be told.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, hint, excerpt } = self;
        writeln!(f, "{file}:{line}:{column}: {message}")?;
        let gutter = " ".repeat(line.to_string().len());
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{line} | {}", excerpt.text)?;
        let indent = " ".repeat(excerpt.start);
        write!(f, "{gutter} | {indent}{}", "^".repeat(excerpt.width))?;
        match hint {
            Some(hint) => write!(f, " {hint}"),
            None => Ok(()),
        }
    }
}

/// All that is wrong with a policy file, in the order of the file. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyErrors {
    pub(crate) file: Arc<str>,
    pub(crate) found: Vec<Finding>,
    pub(crate) unshown: usize,
}

impl PolicyErrors {
    /// The mistakes, the first hundred at most.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.found
    }

    /// Returns the number of mistakes and the file in one line, such as `2 mistakes in shop.yaml`.
    #[must_use]
    pub fn summary(&self) -> String {
        let (count, file) = (self.count(), &self.file);
        let things = if count == 1 { "mistake" } else { "mistakes" };
        let shown = match self.unshown {
            0 => String::new(),
            _ => format!(", the first {} shown", self.found.len()),
        };
        format!("{count} {things} in {file}{shown}")
    }

    /// How many there are, also those that are not kept.
    #[must_use]
    pub fn count(&self) -> usize {
        self.found.len() + self.unshown
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.found {
            writeln!(f, "{finding}\n")?;
        }
        f.write_str(&self.summary())
    }
}

impl std::error::Error for PolicyErrors {}
