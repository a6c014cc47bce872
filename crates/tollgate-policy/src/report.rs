//! Collects what is found while a file is read, so that all of it is told at once.

use std::fmt::Display;
use std::sync::Arc;

use tollgate_core::limit::MAX_NAME;

use crate::finding::{Excerpt, Finding, MAX_EXCERPT, PolicyErrors};
use crate::redact::redact;
use crate::span::Span;
use crate::suggest::suggest;

/// The most mistakes, and the most warnings, that are kept.
const MAX_KEPT: usize = 100;

/// The most known names that are listed where none is near.
const MAX_LISTED: usize = 24;

/// What was found in one file so far.
pub(crate) struct Report<'t> {
    file: Arc<str>,
    lines: Vec<&'t str>,
    errors: Vec<Finding>,
    errors_omitted: usize,
    warnings: Vec<Finding>,
}

impl<'t> Report<'t> {
    pub(crate) fn new(file: &str, text: &'t str) -> Self {
        Self {
            file: file.into(),
            lines: text.split('\n').map(|line| line.trim_end_matches('\r')).collect(),
            errors: Vec::new(),
            errors_omitted: 0,
            warnings: Vec::new(),
        }
    }

    /// Notes a mistake and what would be right.
    pub(crate) fn error(&mut self, at: Span, message: impl Display, hint: impl Display) {
        self.record_error(at, message, Some(&hint));
    }

    /// Notes a mistake whose message says all there is to say.
    pub(crate) fn plain_error(&mut self, at: Span, message: impl Display) {
        self.record_error(at, message, None);
    }

    /// Notes a mistake, and the nearest of the `known` names, or all of them if none is near and
    /// they are few. The nearest is what was probably meant.
    pub(crate) fn error_with_suggestion<'k>(
        &mut self,
        at: Span,
        message: impl Display,
        name: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> Option<&'k str> {
        if self.errors.len() == MAX_KEPT {
            // Comparing names takes time; nobody sees the result of what is not kept.
            self.plain_error(at, message);
            return None;
        }
        let near = suggest(name, known.clone());
        // What is no name is not offered as one.
        let plain = |name: &&str| name.len() <= MAX_NAME && name.chars().all(is_shown);
        let few: Vec<&str> = known.filter(plain).take(MAX_LISTED + 1).collect();
        match near {
            Some(near) => self.error(at, message, format_args!("did you mean {near:?}?")),
            None if few.is_empty() || few.len() > MAX_LISTED => self.plain_error(at, message),
            None => self.error(at, message, format_args!("known are {}", few.join(", "))),
        }
        near
    }

    /// Notes what works, but hardly as it was meant.
    pub(crate) fn warning(&mut self, at: Span, message: impl Display, hint: impl Display) {
        if self.warnings.len() < MAX_KEPT {
            let finding = self.finding(at, &message, Some(&hint));
            self.warnings.push(finding);
        }
    }

    /// Whether nothing is wrong so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// The warnings, in the order of the file.
    ///
    /// # Errors
    /// The mistakes, in the order of the file, if there are any.
    pub(crate) fn finish(mut self) -> Result<Vec<Finding>, PolicyErrors> {
        if self.errors.is_empty() {
            self.warnings.sort_by_key(|finding| (finding.line, finding.column));
            return Ok(self.warnings);
        }
        Err(self.into_errors())
    }

    /// The mistakes, in the order of the file.
    pub(crate) fn into_errors(mut self) -> PolicyErrors {
        self.errors.sort_by_key(|finding| (finding.line, finding.column));
        PolicyErrors { file: self.file, found: self.errors, unshown: self.errors_omitted }
    }

    fn record_error(&mut self, at: Span, message: impl Display, hint: Option<&dyn Display>) {
        if self.errors.len() == MAX_KEPT {
            self.errors_omitted += 1;
            return;
        }
        let finding = self.finding(at, &message, hint);
        self.errors.push(finding);
    }

    fn finding(&self, at: Span, message: &dyn Display, hint: Option<&dyn Display>) -> Finding {
        // A parser may place the end of a file behind its last line.
        let line = at.line.clamp(1, self.lines.len());
        let text = self.lines[line - 1];
        let length = text.chars().count();
        let column = if line == at.line { at.column.clamp(1, length + 1) } else { length + 1 };
        Finding {
            file: Arc::clone(&self.file),
            line,
            column,
            message: message.to_string(),
            hint: hint.map(ToString::to_string),
            excerpt: excerpt(&redact(text), column - 1, at.width),
        }
    }
}

/// Whether a terminal shows the character where it stands: it is no control character, and does
/// not turn the direction of what follows.
pub(crate) fn is_shown(letter: char) -> bool {
    !letter.is_control() && !matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The part of `line` around the character `start`, fit for a terminal.
fn excerpt(line: &str, start: usize, width: usize) -> Excerpt {
    let skipped = if start < MAX_EXCERPT / 2 { 0 } else { start - MAX_EXCERPT / 4 };
    let shown = |letter: char| match letter {
        '\t' => ' ',
        letter if is_shown(letter) => letter,
        _ => '\u{fffd}',
    };
    let text: String = line.chars().skip(skipped).take(MAX_EXCERPT).map(shown).collect();
    let text = text.trim_end();
    let start = start - skipped;
    let left = text.chars().count().saturating_sub(start);
    Excerpt { text: text.to_owned(), start, width: width.min(left).max(1) }
}
