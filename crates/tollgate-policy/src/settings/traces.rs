//! Tracing.

use std::path::PathBuf;

use tollgate_core::Percent;

/// The default percentage of recorded traces, among those that Tollgate starts: 1 %.
pub const DEFAULT_SAMPLE: Percent = match Percent::new(1) {
    Some(percent) => percent,
    None => Percent::ALL,
};

/// The settings of the spans of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesSettings {
    /// The collector. If it is not set, the environment variable applies.
    pub endpoint: Option<Box<str>>,
    /// The certificate authorities to trust for the collector's certificate instead of the
    /// system's.
    pub authorities: Option<PathBuf>,
    /// The percentage of traces that are recorded.
    pub sample: Percent,
    /// Whether to follow the caller's decision.
    pub parents: ParentSampling,
}

/// Whether to follow the caller's decision about whether its trace is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentSampling {
    /// Follow it.
    #[default]
    Follow,
    /// Ignore it.
    Ignore,
}
