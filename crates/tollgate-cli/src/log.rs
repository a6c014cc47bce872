//! What the binary tells while it serves: one line an event, on standard error.
//!
//! What could repeat with every request is told at most once in a while by whoever tells it.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;

use crate::output;

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    #[default]
    Text,
    /// For programs: an object with `timestamp`, `level`, `message` and what belongs to it
    Json,
}

/// How lines are written, where a log was started.
static STARTED: OnceLock<Form> = OnceLock::new();

/// Tells warnings and what an operator wants to know from now on; once a process, before anything
/// else is told.
pub(crate) fn start(form: Form) {
    // The first word stands.
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

/// Tells how the process goes: in a line of its own, or as programs read it.
pub(crate) fn info(line: &dyn Display) {
    if is_for_programs() {
        tracing::info!("{line}");
    } else {
        output::note(&format!("{line}\n"));
    }
}

/// Tells what works, but hardly as it was meant.
pub(crate) fn warn(text: &dyn Display) {
    if is_for_programs() {
        tracing::warn!("{text}");
    } else {
        output::note(&format!("{text}\n\n"));
    }
}

/// Tells why the process ends.
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
