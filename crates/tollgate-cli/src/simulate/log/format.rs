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
    /// The combined format: the common format with referer and user agent, if they are present.
    Combined,
    /// One JSON object per line.
    Json,
}

/// Parses the lines of one log.
#[derive(Debug)]
pub(super) struct Parser {
    /// The format. `None` until a line was parsed.
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

    /// Parses `line`, which has no line end, to an entry.
    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Entry, Malformed> {
        let line = without_service(line);
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

/// The longest name of a service that `docker compose logs` writes before a line, with its padding.
const SERVICE_MAX: usize = 128;

/// Returns `line` without the name of the service that `docker compose logs` writes before it:
/// `caddy-1  | {…`.
fn without_service(line: &[u8]) -> &[u8] {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let start = &line[..line.len().min(SERVICE_MAX)];
    let name = start.iter().take_while(|byte| is_name(byte)).count();
    let padding = start[name..].iter().take_while(|byte| **byte == b' ').count();
    match line.get(name + padding..) {
        Some([b'|', b' ', rest @ ..]) if name > 0 && padding > 0 => rest,
        _ => line,
    }
}

fn likely(line: &[u8]) -> Format {
    if line.trim_ascii_start().starts_with(b"{") { Format::Json } else { Format::Combined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_before_a_line_of_docker_compose_is_skipped() {
        for (line, rest) in [
            ("caddy  | {}", "{}"),
            ("my_nginx-1 | 192.0.2.7 - - [x", "192.0.2.7 - - [x"),
            ("web.1 |  two spaces", " two spaces"),
            ("192.0.2.7 - - [x] \"GET /a | b\"", "192.0.2.7 - - [x] \"GET /a | b\""),
            ("{\"a\": 1} | b", "{\"a\": 1} | b"),
            ("caddy| {}", "caddy| {}"),
            (" | {}", " | {}"),
            ("caddy  |", "caddy  |"),
            ("", ""),
        ] {
            assert_eq!(without_service(line.as_bytes()), rest.as_bytes(), "{line:?}");
        }
    }

    #[test]
    fn lines_of_docker_compose_are_read() {
        let mut parser = Parser::new(None, Arc::default());
        let line =
            br#"caddy  | {"ts":1646861401.5,"request":{"remote_ip":"192.0.2.9","uri":"/x"}}"#;
        let entry = parser.parse(line).unwrap();
        assert_eq!(entry.client(), Some(&b"192.0.2.9"[..]));
        assert_eq!(entry.target(), Some(&b"/x"[..]));
    }
}
