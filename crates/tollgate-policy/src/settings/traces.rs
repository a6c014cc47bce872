//! Tracing.

use std::path::PathBuf;

use tollgate_core::Percent;

/// Of how many traces that begin here spans are sent, unless the file says otherwise: one of a
/// hundred.
pub const DEFAULT_SAMPLE: Percent = match Percent::new(1) {
    Some(percent) => percent,
    None => Percent::ALL,
};

/// Where spans of requests are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesSettings {
    /// The collector; where it is not named, the environment names it.
    pub endpoint: Option<Box<str>>,
    /// The authorities that are believed of its certificate, instead of the machine's own.
    pub authorities: Option<PathBuf>,
    /// Of how many traces.
    pub sample: Percent,
    /// Whether a caller's word counts.
    pub parents: ParentSampling,
}

/// Whether a caller's word counts that its trace is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentSampling {
    /// It does.
    #[default]
    Follow,
    /// It does not.
    Ignore,
}
