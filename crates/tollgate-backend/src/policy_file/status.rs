//! How the reloads of a policy file went.

use std::time::SystemTime;

/// How the reloads of a policy file went since the process started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadStatus {
    /// How many put another policy in force.
    pub done: u64,
    /// How many were refused.
    pub refused: u64,
    /// When the policy in force was put there, if that was not at the start.
    pub replaced_at: Option<SystemTime>,
    /// Why the file as it is now is not in force, if it is not.
    pub refusal: Option<Refusal>,
}

/// A reload that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When.
    pub at: SystemTime,
    /// What is wrong with the file, with its line and column where that is known.
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

    /// The file says what is in force, whatever it said meanwhile.
    pub(super) fn in_force_again(&mut self) {
        self.refusal = None;
    }
}
