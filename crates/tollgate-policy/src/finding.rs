//! Mistakes and warnings about a policy file, with their positions.

use std::fmt;
use std::sync::Arc;

use crate::redact::MASK;

/// The largest number of characters of a line that a message shows.
pub(crate) const MAX_EXCERPT: usize = 160;

/// A mistake or a warning at a position in a policy file.
///
/// Its `Display` form shows the file, line and column, the message, the line with the position
/// marked, and a hint:
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

/// A line of the policy file, or a part of a long line, and the range of its characters that a
/// message marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    pub(crate) start: usize,
    pub(crate) width: usize,
}

impl Excerpt {
    /// Masks the characters of the excerpt from the first marked one to the end. The rest of the
    /// line is masked too, because the end of a secret cannot be found.
    pub(crate) fn hide(&mut self) {
        let shown = |(place, letter): (usize, char)| match place < self.start {
            true => letter,
            false => MASK,
        };
        self.text = self.text.chars().enumerate().map(shown).collect();
    }
}

impl Finding {
    /// Returns the name of the file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line number, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the column in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// Returns the message, which is one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the hint that states how to correct the mistake, if there is one. The hint is one
    /// line.
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

/// The mistakes in a policy file, in file order. There is at least one mistake. At most a hundred
/// mistakes are kept, and the others are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyErrors {
    pub(crate) file: Arc<str>,
    pub(crate) found: Vec<Finding>,
    pub(crate) unshown: usize,
}

impl PolicyErrors {
    /// Returns the mistakes, at most the first hundred.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.found
    }

    /// Returns one line with the number of mistakes and the name of the file, such as
    /// `2 mistakes in shop.yaml`.
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

    /// Returns the number of all mistakes, including those after the first hundred.
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
