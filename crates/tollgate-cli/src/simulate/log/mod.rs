//! Reads access logs as one stream of entries in the order of their times.
//!
//! The steps for a line: bytes → [`lines`] (bounded) → [`mod@format`] (combined or JSON) →
//! [`entry`] (compact) → [`reorder`] (by time, within a horizon) → [`merge`] (several files).
//! Memory is bounded at every step: a line by [`LINE_MAX`], a reorder buffer by its capacity, the
//! open files by [`FILES_MAX`].

mod combined;
mod draft;
mod entry;
mod error;
mod fields;
mod format;
mod json;
mod lines;
mod malformed;
mod merge;
mod quoted;
mod reorder;
mod request_line;
mod source;
mod stream;
mod time;

#[cfg(test)]
mod tests;

pub(crate) use entry::{Entry, HEADERS_MAX};
pub(crate) use error::LogError;
pub(crate) use fields::FieldMap;
pub(crate) use format::Format;
pub(crate) use malformed::{Example, ParseIssues};
pub(crate) use merge::{Log, Options};
pub(crate) use source::Input;

/// The length of the longest line that is read, in bytes. With its line end, such a line has 64
/// KiB.
pub(crate) const LINE_MAX: usize = u16::MAX as usize;

/// The most logs that can be merged.
pub(crate) const FILES_MAX: usize = 64;
