//! The formats of logs, and a parser that detects the format.

use std::sync::Arc;

use super::combined::{self, Trailer};
use super::draft::Draft;
use super::entry::Entry;
use super::fields::FieldMap;
use super::json;
use super::malformed::Malformed;
use super::time::ClfClock;

/// A log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The common format of Apache and nginx; text after the size is ignored.
    Common,
    /// The combined format: the common one with referer and user agent if they are present.
    Combined,
    /// One JSON object per line.
    Json,
}

/// Parses the lines of one log.
#[derive(Debug)]
pub(super) struct Parser {
    /// `None` until a line was parsed.
    format: Option<Format>,
    fields: Arc<FieldMap>,
    clock: ClfClock,
    draft: Draft,
}

impl Parser {
    /// Creates a parser for logs in `format`, or in the format of the first line that can be
    /// parsed.
    pub(super) fn new(format: Option<Format>, fields: Arc<FieldMap>) -> Self {
        Self { format, fields, clock: ClfClock::default(), draft: Draft::default() }
    }

    /// Parses `line`, without its line end, to an entry.
    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Entry, Malformed> {
        let format = self.format.unwrap_or_else(|| likely(line));
        let (clock, draft) = (&mut self.clock, &mut self.draft);
        draft.clear();
        match format {
            Format::Common => combined::parse(line, Trailer::Ignored, clock, draft)?,
            Format::Combined => combined::parse(line, Trailer::RefererAndAgent, clock, draft)?,
            Format::Json => json::parse(line, &self.fields, clock, draft)?,
        }
        let entry = self.draft.entry()?;
        self.format = Some(format);
        Ok(entry)
    }
}

fn likely(line: &[u8]) -> Format {
    if line.trim_ascii_start().starts_with(b"{") { Format::Json } else { Format::Combined }
}
