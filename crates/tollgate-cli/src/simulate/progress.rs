//! A progress bar on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::log::Log;

/// The number of entries between two updates.
const STRIDE: u64 = 4_096;

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressTarget {
    /// Progress is shown on standard error if standard error is a terminal.
    Terminal,
    /// Progress is not shown.
    Hidden,
}

/// A progress bar on standard error that shows how much of a log has been read. The bar is shown
/// only if standard error is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    entries: u64,
}

impl Progress {
    /// Creates the progress bar of `log`. `watcher` selects whether the bar can be shown.
    pub(crate) fn of(log: &Log, watcher: ProgressTarget) -> Self {
        let target = match watcher {
            // The bar hides itself if standard error is not a terminal.
            ProgressTarget::Terminal => ProgressDrawTarget::stderr_with_hz(10),
            ProgressTarget::Hidden => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(log.bytes_total(), target);
        let template = match log.bytes_total() {
            Some(_) => {
                "{bar:40} {percent:>3} % · {bytes}/{total_bytes} · {bytes_per_sec} · {eta} left"
            }
            None => "{spinner} {bytes} · {bytes_per_sec}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, entries: 0 }
    }

    /// Counts one entry that was read from `log`.
    pub(crate) fn entry(&mut self, log: &Log) {
        self.entries += 1;
        if self.entries.is_multiple_of(STRIDE) {
            self.bar.set_position(log.bytes_read());
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
