//! The formats of logs, and a parser that finds out which one a log is in.

use std::sync::Arc;

use super::combined::{self, Trailer};
use super::draft::Draft;
use super::entry::Entry;
use super::fields::FieldMap;
use super::json;
use super::malformed::Malformed;
use super::time::ClfClock;

/// How a log writes its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Apache's and nginx's common format; what follows the size is not read.
    Common,
    /// The combined format: the common one, then referer and user agent where they are there.
    Combined,
    /// One JSON object a line.
    Json,
}

/// Reads the lines of one log.
#[derive(Debug)]
pub(super) struct Parser {
    /// `None` until a line could be read.
    format: Option<Format>,
    fields: Arc<FieldMap>,
    clock: ClfClock,
    draft: Draft,
}

impl Parser {
    /// A parser of logs in `format`, or in that of the first line that can be read.
    pub(super) fn new(format: Option<Format>, fields: Arc<FieldMap>) -> Self {
        Self { format, fields, clock: ClfClock::default(), draft: Draft::default() }
    }

    /// The entry that `line`, without its end, tells of.
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
