//! Collects the mistakes and warnings that are found while a file is read. All of them are reported
//! together at the end.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use tollgate_core::limit::MAX_NAME;

use crate::finding::{Excerpt, Finding, MAX_EXCERPT, PolicyErrors};
use crate::quote::{is_shown, quoted};
use crate::redact::redact;
use crate::span::Span;
use crate::suggest::suggest;

/// The largest number of mistakes that a report keeps. The same number applies to warnings.
const MAX_KEPT: usize = 100;

/// The largest number of known names that a hint can list. A hint lists the known names only if
/// none of them is similar to the wrong name.
const MAX_LISTED: usize = 32;

/// The mistakes and warnings that were found in a file, and in the files that it includes, so far.
pub(crate) struct Report<'t> {
    /// The names and the texts of the files. The first one is the policy file.
    files: Vec<(Arc<str>, Cow<'t, str>)>,
    errors: Vec<Finding>,
    errors_omitted: usize,
    warnings: Vec<Finding>,
}

impl<'t> Report<'t> {
    pub(crate) fn new(file: &str, text: &'t str) -> Self {
        Self {
            files: vec![(file.into(), Cow::Borrowed(text))],
            errors: Vec::new(),
            errors_omitted: 0,
            warnings: Vec::new(),
        }
    }

    /// Adds the text of an included file, whose name is `file`. Returns the number by which a
    /// [`Span`] refers to the file.
    pub(crate) fn include(&mut self, file: &str, text: String) -> u16 {
        self.files.push((file.into(), Cow::Owned(text)));
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    /// Returns a description of the position `at`, for example `on line 3`, for a message about the
    /// position `from`. If `at` is in another file than `from`, the description names that file.
    pub(crate) fn location(&self, at: Span, from: Span) -> String {
        match self.files.get(usize::from(at.file)) {
            Some((file, _)) if at.file != from.file => format!("in {file}, line {}", at.line),
            _ => format!("on line {}", at.line),
        }
    }

    /// Adds a mistake at the position `at`, with a hint that states how to correct it.
    pub(crate) fn error(&mut self, at: Span, message: impl Display, hint: impl Display) {
        self.record_error(at, message, Some(&hint));
    }

    /// Adds a mistake with a hint, at a position that might contain a secret. The line that the
    /// message shows is masked from this position on.
    pub(crate) fn hidden_mistake(&mut self, at: Span, message: impl Display, hint: impl Display) {
        self.record_error(at, message, Some(&hint));
        if let Some(finding) = self.errors.last_mut() {
            finding.excerpt.hide();
        }
    }

    /// Adds the mistake that `entry`, in a file with networks, is not a network. `line` is the line
    /// that contains `entry`, `number` is the number of the line, and `before` is the number of
    /// bytes before `entry`. The message shows only text that can be part of an address.
    pub(crate) fn error_in_file(
        &mut self,
        file: &Arc<str>,
        number: usize,
        line: &str,
        (before, entry): (usize, &str),
        hint: impl Display,
    ) {
        if self.errors.len() == MAX_KEPT {
            self.errors_omitted += 1;
            return;
        }
        let start = line.chars().take_while(|letter| letter.is_whitespace()).count();
        let is_like_address = |letter: char| letter.is_ascii_hexdigit() || "./: ".contains(letter);
        let is_shown = entry.chars().all(is_like_address);
        let shown = if is_shown { quoted(entry) } else { "this line".to_owned() };
        let shown_line = line.get(..before + entry.len()).unwrap_or(line);
        let mut excerpt = excerpt(shown_line, start, entry.chars().count());
        if !is_shown {
            excerpt.hide();
        }
        self.errors.push(Finding {
            file: Arc::clone(file),
            line: number,
            column: start + 1,
            message: format!("{shown} is not a network"),
            hint: Some(hint.to_string()),
            excerpt,
        });
    }

    /// Adds a mistake at the position `at`, without a hint.
    pub(crate) fn plain_error(&mut self, at: Span, message: impl Display) {
        self.record_error(at, message, None);
    }

    /// Adds a mistake with a hint about `known` names. The hint suggests the known name that is
    /// most similar to `name`, which the author probably meant. The function returns this name. If
    /// no name is similar and there are few known names, the hint lists all of them.
    pub(crate) fn error_with_suggestion<'k>(
        &mut self,
        at: Span,
        message: impl Display,
        name: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> Option<&'k str> {
        if self.errors.len() == MAX_KEPT {
            // Comparing names takes time, so it is skipped if the report will not keep the mistake.
            self.plain_error(at, message);
            return None;
        }
        let near = suggest(name, known.clone());
        // Words that are not valid names are not suggested.
        let plain = |name: &&str| name.len() <= MAX_NAME && name.chars().all(is_shown);
        let few: Vec<&str> = known.filter(plain).take(MAX_LISTED + 1).collect();
        match near {
            Some(near) => self.error(at, message, format_args!("did you mean {near:?}?")),
            None if few.is_empty() || few.len() > MAX_LISTED => self.plain_error(at, message),
            None => self.error(at, message, format_args!("expected one of {}", few.join(", "))),
        }
        near
    }

    /// Adds a warning at the position `at`, with a hint.
    pub(crate) fn warning(&mut self, at: Span, message: impl Display, hint: impl Display) {
        if self.warnings.len() < MAX_KEPT {
            let finding = self.finding(at, &message, Some(&hint));
            self.warnings.push(finding);
        }
    }

    /// Returns whether no mistake has been found so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns the warnings in file order.
    ///
    /// # Errors
    /// If there are mistakes, returns the mistakes in file order.
    pub(crate) fn finish(mut self) -> Result<Vec<Finding>, PolicyErrors> {
        if self.errors.is_empty() {
            sort(&mut self.warnings, &self.files[0].0);
            return Ok(self.warnings);
        }
        Err(self.into_errors())
    }

    /// Returns the mistakes in file order.
    pub(crate) fn into_errors(mut self) -> PolicyErrors {
        let (file, _) = self.files.swap_remove(0);
        sort(&mut self.errors, &file);
        PolicyErrors { file, found: self.errors, unshown: self.errors_omitted }
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
        let (file, text) = self.files.get(usize::from(at.file)).unwrap_or(&self.files[0]);
        let lines = || (1..).zip(text.split('\n'));
        // The parser can report the end of a file at a line number that is greater than the number
        // of lines.
        let shown = lines().nth(at.line.max(1) - 1).or_else(|| lines().last());
        let (line, text) = shown.unwrap_or((1, ""));
        let text = text.trim_end_matches('\r');
        let length = text.chars().count();
        let column = if line == at.line { at.column.clamp(1, length + 1) } else { length + 1 };
        Finding {
            file: Arc::clone(file),
            line,
            column,
            message: message.to_string(),
            hint: hint.map(ToString::to_string),
            excerpt: excerpt(&redact(text), column - 1, at.width),
        }
    }
}

/// Sorts findings by their positions. Findings in the policy file, whose name is `own`, come before
/// those in included files.
fn sort(findings: &mut [Finding], own: &Arc<str>) {
    findings.sort_by_cached_key(|finding| {
        let other = (finding.file != *own).then(|| Arc::clone(&finding.file));
        (other, finding.line, finding.column)
    });
}

/// Returns the part of `line` around the character `start` that a message shows. `width` characters
/// are marked. Characters that a terminal might interpret are replaced.
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
