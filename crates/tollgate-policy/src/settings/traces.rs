//! The settings of tracing.

use std::path::PathBuf;

use tollgate_core::Percent;

/// The default percentage of traces that are recorded: 1 % of the traces that Tollgate starts.
pub const DEFAULT_SAMPLE: Percent = match Percent::new(1) {
    Some(percent) => percent,
    None => Percent::ALL,
};

/// The settings of tracing: where the spans of requests are sent, and for which requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesSettings {
    /// The address of the collector. If this is `None`, the environment variable
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` sets the address.
    pub endpoint: Option<Box<str>>,
    /// The certificate authorities to trust for the collector's certificate instead of the
    /// system's.
    pub authorities: Option<PathBuf>,
    /// The percentage of traces that are recorded. [`parents`](Self::parents) determines to which
    /// traces it applies.
    pub sample: Percent,
    /// Whether Tollgate follows a caller's decision about recording the caller's trace.
    pub parents: ParentSampling,
}

/// Whether Tollgate follows a caller's decision about recording the caller's trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentSampling {
    /// Tollgate follows the caller's decision. The percentage applies only to traces that Tollgate
    /// starts.
    #[default]
    Follow,
    /// Tollgate ignores the caller's decision. The percentage applies to all traces.
    Ignore,
}
