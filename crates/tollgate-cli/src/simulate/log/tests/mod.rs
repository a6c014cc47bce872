//! Tests that read logs as the command does.

mod files;
mod lines;
mod roundtrip;
mod shipped;

use std::sync::Arc;

use super::entry::Entry;
use super::fields::FieldMap;
use super::format::{Format, Parser};
use super::malformed::Malformed;

/// Returns the entry for a line of a log in `format`, or in a format to detect.
fn parse(line: &[u8], format: Option<Format>) -> Result<Entry, Malformed> {
    Parser::new(format, Arc::new(FieldMap::default())).parse(line)
}
