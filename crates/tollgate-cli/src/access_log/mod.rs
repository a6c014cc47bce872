//! The access log of the proxy: one line for each request that reaches the limits.
//!
//! When the response to a request ends, the request adds its line to a bounded queue. A thread
//! writes the lines to the file. If the disk is slower than the requests, lines are dropped and
//! counted, and no request waits.

mod format;
mod layer;
mod writer;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) use layer::AccessLogLayer;
pub(crate) use writer::{AccessLog, Lines};

use crate::failure::Failure;

/// The flags of the access log.
#[derive(Debug, Args)]
#[group(id = "access-log-flags")]
pub(crate) struct Flags {
    /// Write a line for each request to this file; - is standard output. SIGHUP opens it again
    #[arg(long, value_name = "FILE", help_heading = "Access log")]
    access_log: Option<PathBuf>,
    /// The format of a line; `tollgate simulate` reads both
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Access log")]
    access_log_format: Format,
    /// Write only requests that were refused
    #[arg(long, requires = "access_log", help_heading = "Access log")]
    access_log_refusals: bool,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object, with the names of nginx's variables and the limit that refused
    #[default]
    Json,
    /// The combined format of Apache and nginx
    Combined,
}

/// Which requests are written to the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    Refusals,
}

/// Opens the log if the flags name one.
///
/// # Errors
/// The file cannot be opened.
pub(crate) fn open(flags: &Flags) -> Result<Option<AccessLog>, Failure> {
    let Some(path) = &flags.access_log else { return Ok(None) };
    let written = if flags.access_log_refusals { Written::Refusals } else { Written::All };
    let log = AccessLog::open(path, flags.access_log_format, written);
    Ok(Some(log.map_err(|error| format!("cannot write to {}: {error}", path.display()))?))
}
