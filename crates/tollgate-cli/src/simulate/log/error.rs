//! Errors that prevent reading a log. Malformed lines are not errors: see
//! [`ParseIssues`](super::ParseIssues).

use std::{fmt, io};

use super::FILES_MAX;

/// A log that cannot be opened or read.
#[derive(Debug)]
pub(crate) enum LogError {
    /// A log cannot be opened.
    Open {
        /// The log's name.
        log: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Reading failed after `line` lines, for example because gzip data is damaged.
    Read {
        /// The log's name.
        log: String,
        /// The number of lines that were read before the failure.
        line: u64,
        /// The error of the operating system or the decoder.
        source: io::Error,
    },
    /// There are more logs than [`FILES_MAX`].
    TooMany {
        /// The number of logs.
        count: usize,
    },
    /// Standard input was named twice.
    StdinTwice,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { log, source } => write!(f, "cannot open {log}: {source}"),
            Self::Read { log, line, source } => {
                write!(f, "cannot read {log} after line {line}: {source}")
            }
            Self::TooMany { count } => write!(
                f,
                "{count} logs are more than the {FILES_MAX} that can be merged at once; \
                 join some of them first (`cat a.log b.log > joined.log`; gzip files join as well)"
            ),
            Self::StdinTwice => f.write_str("`-` (standard input) can be given only once"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { source, .. } | Self::Read { source, .. } => Some(source),
            Self::TooMany { .. } | Self::StdinTwice => None,
        }
    }
}
