//! The settings of tracing.

use std::path::PathBuf;

use tollgate_core::Percent;

/// The default percentage of traces that are recorded, of the traces that Tollgate starts: 1 %.
pub const DEFAULT_SAMPLE: Percent = match Percent::new(1) {
    Some(percent) => percent,
    None => Percent::ALL,
};

/// The settings of the spans of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesSettings {
    /// The collector. If it is not set, the environment variable `OTEL_EXPORTER_OTLP_ENDPOINT`
    /// applies.
    pub endpoint: Option<Box<str>>,
    /// The certificate authorities to trust for the collector's certificate instead of the
    /// system's.
    pub authorities: Option<PathBuf>,
    /// The percentage of traces that are recorded.
    pub sample: Percent,
    /// Whether to follow the caller's decision about recording its trace.
    pub parents: ParentSampling,
}

/// Whether to follow the caller's decision about recording its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentSampling {
    /// Follow the caller's decision. The percentage applies only to traces that Tollgate starts.
    #[default]
    Follow,
    /// Ignore the caller's decision. The percentage applies to all traces.
    Ignore,
}
