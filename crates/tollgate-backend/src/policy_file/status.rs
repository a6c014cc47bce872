//! The results of the reloads of a policy file.

use std::time::SystemTime;

/// The results of the reloads of a policy file since the process started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadStatus {
    /// The number of reloads that put another policy in force.
    pub done: u64,
    /// The number of reloads that were refused.
    pub refused: u64,
    /// The time at which the policy in force was loaded. `None` if the policy in force was loaded
    /// at the start.
    pub replaced_at: Option<SystemTime>,
    /// The reason why the current file is not in force. `None` if the current file is in force.
    pub refusal: Option<Refusal>,
}

/// A refused reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The time of the reload.
    pub at: SystemTime,
    /// The problem with the file, with its line and column if known.
    pub reason: String,
}

impl ReloadStatus {
    pub(super) fn replaced(&mut self, at: SystemTime) {
        self.done += 1;
        self.replaced_at = Some(at);
        self.refusal = None;
    }

    pub(super) fn refused(&mut self, at: SystemTime, reason: String) {
        self.refused += 1;
        self.refusal = Some(Refusal { at, reason });
    }

    /// Records that the file equals the policy in force again.
    pub(super) fn in_force_again(&mut self) {
        self.refusal = None;
    }
}
