//! What the binary tells while it serves: one line an event, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::filter::LevelFilter;

/// Tells warnings and what an operator wants to know from now on; once a process.
pub(crate) fn start() {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(LevelFilter::INFO)
        .init();
}
