//! What the binary tells while it serves: one line an event, on standard error.
//!
//! What could repeat with every request is told at most once in a while by whoever tells it.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    #[default]
    Text,
    /// For programs: an object with `timestamp`, `level`, `message` and what belongs to it
    Json,
}

/// Tells warnings and what an operator wants to know from now on; once a process.
pub(crate) fn start(form: Form) {
    let lines = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false)
        .with_max_level(LevelFilter::INFO);
    match form {
        Form::Text => lines.with_ansi(io::stderr().is_terminal()).init(),
        Form::Json => lines.json().flatten_event(true).with_current_span(false).init(),
    }
}
