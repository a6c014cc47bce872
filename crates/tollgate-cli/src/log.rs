//! The log of the binary: one line per event, on standard error.
//!
//! Events that could occur with every request are rate limited where they are logged.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;

use crate::output;

/// The format of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs: an object with `timestamp`, `level`, `message` and the event's fields
    Json,
}

/// The format of log lines, if the log was started.
static STARTED: OnceLock<Form> = OnceLock::new();

/// Starts the log for warnings and operational messages. Must be called once per process, before
/// the first event.
pub(crate) fn start(form: Form) {
    // Only the first call sets the format. An error of a later call is ignored.
    let _ = STARTED.set(form);
    let lines = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false)
        .with_max_level(LevelFilter::INFO);
    match form {
        Form::Text => lines.with_ansi(io::stderr().is_terminal()).init(),
        Form::Json => lines.json().flatten_event(true).with_current_span(false).init(),
    }
}

/// Logs the progress of the process: as a plain line, or as JSON.
pub(crate) fn info(line: &dyn Display) {
    if is_for_programs() {
        tracing::info!("{line}");
    } else {
        output::note(&format!("{line}\n"));
    }
}

/// Logs a warning about the policy.
pub(crate) fn warn(text: &dyn Display) {
    if is_for_programs() {
        tracing::warn!("{text}");
    } else {
        output::note(&format!("{text}\n\n"));
    }
}

/// Logs the error that ends the process.
pub(crate) fn fail(reason: &dyn Display) {
    if is_for_programs() {
        tracing::error!("{reason}");
    } else {
        output::note(&format!("{reason}\n"));
    }
}

fn is_for_programs() -> bool {
    STARTED.get() == Some(&Form::Json)
}
