//! The key `traces`: tracing.

use crate::decode::{Percent, Text, choices, keys};
use crate::settings::ParentSampling;

keys! {
    /// The destination of the spans of requests, and the share of requests with spans. `--traces` and
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` set the destination too.
    struct Traces as "tracing" {
        /// The collector, which accepts OTLP over HTTP, such as `http://127.0.0.1:4318` or
        /// `https://collector:4318`. By default the value of `OTEL_EXPORTER_OTLP_ENDPOINT`.
        endpoint: Text,
        /// The certificate authorities (CA) to trust for the collector's certificate instead of the
        /// system's, a PEM file. By default `OTEL_EXPORTER_OTLP_CERTIFICATE`.
        ca: Text,
        /// The percentage of the traces that Tollgate starts for which spans are sent, `0%` to
        /// `100%`. By default `1%`.
        sample: Percent,
        /// Whether to follow the caller's decision about whether its trace is recorded. By default
        /// `follow`.
        parents: ParentsName,
    }
}

choices! {
    /// Whether to follow the caller's decision about whether its trace is recorded.
    struct ParentsName(ParentSampling) as "a parents mode" {
        /// The caller's decision is followed; `sample` applies only to traces that Tollgate starts.
        "follow" => ParentSampling::Follow,
        /// The caller's decision is ignored; `sample` applies to all traces. For listeners that
        /// untrusted callers can reach.
        "ignore" => ParentSampling::Ignore,
    }
}
