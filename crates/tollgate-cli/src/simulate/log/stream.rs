//! The entries of one log in the order of their times.

use std::io::Read;

use super::entry::Entry;
use super::error::LogError;
use super::format::Parser;
use super::lines::{Line, Lines};
use super::malformed::{Malformed, ParseIssues};
use super::reorder::{Arrival, Reorder};

/// An open log, with its parser and the buffer that sorts its entries.
#[derive(Debug)]
pub(super) struct Stream<R> {
    name: String,
    lines: Lines<R>,
    /// The number of lines read.
    line: u64,
    parser: Parser,
    reorder: Reorder,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    NotReached,
    Reached,
}

impl<R: Read> Stream<R> {
    /// Creates the stream of the log in `reader`, which messages call `name`.
    pub(super) fn new(name: String, reader: R, parser: Parser, reorder: Reorder) -> Self {
        Self { name, lines: Lines::new(reader), line: 0, parser, reorder, end: End::NotReached }
    }

    /// Returns the log's next entry, or `None` at the end of the log. Malformed lines and late
    /// entries are added to `issues`.
    pub(super) fn next_entry(
        &mut self,
        issues: &mut ParseIssues,
    ) -> Result<Option<Entry>, LogError> {
        loop {
            if self.end == End::Reached {
                return Ok(self.reorder.pop());
            }
            if let Some(entry) = self.reorder.pop_ready() {
                return Ok(Some(entry));
            }
            self.read_line(issues)?;
        }
    }

    fn read_line(&mut self, issues: &mut ParseIssues) -> Result<(), LogError> {
        let line = self.lines.next_line().map_err(|source| LogError::Read {
            log: self.name.clone(),
            line: self.line,
            source,
        })?;
        let Some(line) = line else {
            self.end = End::Reached;
            return Ok(());
        };
        self.line += 1;
        let (text, parsed) = match line {
            Line::Text([]) => return Ok(()),
            Line::Text(text) => (text, self.parser.parse(text)),
            Line::TooLong(start) => (start, Err(Malformed::TooLong)),
        };
        match parsed {
            Ok(entry) => {
                let late = self.reorder.push(entry) == Arrival::Late;
                issues.late += u64::from(late);
            }
            Err(why) => issues.count(&self.name, self.line, text, why),
        }
        Ok(())
    }
}
