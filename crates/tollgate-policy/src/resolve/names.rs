//! The names that a policy file defines, and which of them the file uses.

use std::collections::HashMap;

use crate::decode::{Field, Named, Names, Spanned, quoted};
use crate::report::Report;
use crate::span::Span;

/// The names that one section of the file defines, such as the names of the limits, in file order.
/// The table records which of the names the file uses.
pub(super) struct NameTable<'f, T> {
    kind: &'static str,
    named: &'f [Named<T>],
    indices: HashMap<&'f str, usize>,
    used: Vec<bool>,
    /// Whether the section could be read. If not, its mistake is already reported, and unknown
    /// names are not reported.
    are_read: bool,
}

impl<'f, T> NameTable<'f, T> {
    pub(super) fn new(names: &'f Field<Names<T>>, kind: &'static str) -> Self {
        let are_read = !matches!(names, Field::Invalid);
        let named = names.value().map_or(&[][..], |names| &names.0);
        let indices = named.iter().enumerate().map(|(index, named)| (&*named.name.value, index));
        Self { kind, named, indices: indices.collect(), used: vec![false; named.len()], are_read }
    }

    /// Returns all names in file order.
    pub(super) fn all(&self) -> &'f [Named<T>] {
        self.named
    }

    /// Returns the index of `name`, and marks the name as used. `at` is the position at which the
    /// file uses the name. Returns `None` after reporting that there is no such name.
    pub(super) fn index(&mut self, name: &str, at: Span, report: &mut Report<'_>) -> Option<usize> {
        if let Some(index) = self.known(name) {
            return Some(index);
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

    /// Returns the index of `name`, and marks the name as used. Returns `None` if there is no such
    /// name.
    pub(super) fn known(&mut self, name: &str) -> Option<usize> {
        let index = *self.indices.get(name)?;
        self.used[index] = true;
        Some(index)
    }

    /// Returns the names that the file does not use.
    pub(super) fn unused(&self) -> impl Iterator<Item = &Spanned<String>> {
        let unused = self.named.iter().zip(&self.used).filter(|(_, used)| !**used);
        unused.map(|(named, _)| &named.name)
    }
}
