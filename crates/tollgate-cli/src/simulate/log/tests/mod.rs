//! Logs read as the command reads them.

mod files;
mod lines;
mod roundtrip;
mod shipped;

use std::sync::Arc;

use super::entry::Entry;
use super::fields::FieldMap;
use super::format::{Format, Parser};
use super::malformed::Malformed;

/// The entry that a line makes in a log of `format`, or of a format to find out.
fn parse(line: &[u8], format: Option<Format>) -> Result<Entry, Malformed> {
    Parser::new(format, Arc::new(FieldMap::default())).parse(line)
}
