//! Merges several logs in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::FILES_MAX;
use super::entry::Entry;
use super::error::LogError;
use super::fields::FieldMap;
use super::format::{Format, Parser};
use super::malformed::ParseIssues;
use super::reorder::Reorder;
use super::source::{Input, Source};
use super::stream::Stream;

/// The settings for reading logs.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The format of all logs; `None` detects it for each log.
    pub(crate) format: Option<Format>,
    /// The mapping of JSON keys to fields.
    pub(crate) fields: FieldMap,
    /// The longest time that an entry may be behind the latest entry of its log, in milliseconds of
    /// log time. An entry that is further behind counts as late.
    pub(crate) horizon: u64,
    /// The most entries in the reorder buffers of all logs together.
    pub(crate) capacity: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            fields: FieldMap::default(),
            horizon: 5 * 60 * 1000,
            capacity: 262_144,
        }
    }
}

/// A stream of the entries of several logs in the order of their times. Entries with the same time
/// are ordered by their logs, and entries of the same log keep their order.
#[derive(Debug)]
pub(crate) struct Log {
    streams: Vec<Stream<Source>>,
    /// The next entry of each stream. `None` for a stream that has ended.
    heads: Vec<Option<Entry>>,
    /// A heap with the time and the stream of each next entry. The earliest entry is on top.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    issues: ParseIssues,
    read: Arc<AtomicU64>,
    size: Option<u64>,
}

impl Log {
    /// Opens all of `inputs`, and reads each of them up to its first entry.
    pub(crate) fn open(inputs: &[Input], options: &Options) -> Result<Self, LogError> {
        if inputs.len() > FILES_MAX {
            return Err(LogError::TooMany { count: inputs.len() });
        }
        if inputs.iter().filter(|input| **input == Input::Stdin).count() > 1 {
            return Err(LogError::StdinTwice);
        }
        let fields = Arc::new(options.fields.clone());
        let capacity = options.capacity / inputs.len().max(1);
        let read = Arc::new(AtomicU64::new(0));
        let mut size = Some(0);
        let mut streams = Vec::with_capacity(inputs.len());
        for input in inputs {
            let source = Source::open(input, &read)?;
            size = size.zip(source.size).map(|(sum, size)| sum + size);
            let parser = Parser::new(options.format, Arc::clone(&fields));
            let reorder = Reorder::new(options.horizon, capacity);
            streams.push(Stream::new(input.to_string(), source, parser, reorder));
        }
        let mut log = Self {
            heads: vec![None; streams.len()],
            order: BinaryHeap::with_capacity(streams.len()),
            streams,
            issues: ParseIssues::default(),
            read,
            size,
        };
        (0..log.streams.len()).try_for_each(|stream| log.advance(stream))?;
        Ok(log)
    }

    /// Returns the next entry, or `None` after the last one.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>, LogError> {
        let Some(Reverse((_, stream))) = self.order.pop() else {
            return Ok(None);
        };
        let entry = self.heads[stream].take();
        self.advance(stream)?;
        Ok(entry)
    }

    /// Returns the malformed lines and late entries so far.
    pub(crate) fn issues(&self) -> &ParseIssues {
        &self.issues
    }

    /// Returns the bytes that were read so far from all logs, before decompression.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Returns the bytes of all logs before decompression, or `None` if one of them is not a
    /// regular file.
    pub(crate) fn bytes_total(&self) -> Option<u64> {
        self.size
    }

    fn advance(&mut self, stream: usize) -> Result<(), LogError> {
        let next = self.streams[stream].next_entry(&mut self.issues)?;
        if let Some(entry) = &next {
            self.order.push(Reverse((entry.time, stream)));
        }
        self.heads[stream] = next;
        Ok(())
    }
}
