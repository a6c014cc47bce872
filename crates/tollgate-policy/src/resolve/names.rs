//! Names that a file gives, and their uses.

use std::collections::HashMap;

use crate::decode::{Field, Named, Names, Spanned, quoted};
use crate::report::Report;
use crate::span::Span;

/// The names of one kind in the order of the file, and which of them are used.
pub(super) struct NameTable<'f, T> {
    kind: &'static str,
    named: &'f [Named<T>],
    indices: HashMap<&'f str, usize>,
    used: Vec<bool>,
    /// Whether the names could be read; else it is reported that they could not.
    are_read: bool,
}

impl<'f, T> NameTable<'f, T> {
    pub(super) fn new(names: &'f Field<Names<T>>, kind: &'static str) -> Self {
        let are_read = !matches!(names, Field::Invalid);
        let named = names.value().map_or(&[][..], |names| &names.0);
        let indices = named.iter().enumerate().map(|(index, named)| (&*named.name.value, index));
        Self { kind, named, indices: indices.collect(), used: vec![false; named.len()], are_read }
    }

    /// All of them, in the order of the file.
    pub(super) fn all(&self) -> &'f [Named<T>] {
        self.named
    }

    /// The index of `name`, which is used at `at`; `None` if there is none, which is reported.
    pub(super) fn index(&mut self, name: &str, at: Span, report: &mut Report<'_>) -> Option<usize> {
        if let Some(index) = self.indices.get(name) {
            self.used[*index] = true;
            return Some(*index);
        }
        if !self.are_read {
            return None;
        }
        let message = format!("unknown {} {}", self.kind, quoted(name));
        if self.named.is_empty() {
            let hint = format_args!("the file has no `{}s`", self.kind);
            report.error(at, message, hint);
        } else {
            let known = self.named.iter().map(|named| &*named.name.value);
            report.error_with_suggestion(at, message, name, known);
        }
        None
    }

    /// The names that nothing uses.
    pub(super) fn unused(&self) -> impl Iterator<Item = &Spanned<String>> {
        let unused = self.named.iter().zip(&self.used).filter(|(_, used)| !**used);
        unused.map(|(named, _)| &named.name)
    }
}
