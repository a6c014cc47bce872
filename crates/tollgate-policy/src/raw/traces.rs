//! Tracing, as written.

use crate::decode::{Percent, Text, keys, words};
use crate::settings::ParentSampling;

keys! {
    /// Where spans of requests are sent, and of how many requests. `--traces` and `OTEL_EXPORTER_OTLP_ENDPOINT` say the same.
    struct Traces as "tracing" {
        /// The collector that speaks OTLP over HTTP, such as `http://127.0.0.1:4318` or `https://collector:4318`. By default what `OTEL_EXPORTER_OTLP_ENDPOINT` says.
        endpoint: Text,
        /// The certificate authorities (CA) to trust for its certificate, a PEM file, instead of the system's. By default `OTEL_EXPORTER_OTLP_CERTIFICATE`.
        ca: Text,
        /// Of how many traces that begin here spans are sent, `0%` to `100%`. By default `1%`.
        sample: Percent,
        /// Whether a caller's word counts that its trace is recorded. By default `follow`.
        parents: ParentsName,
    }
}

words! {
    /// Whether a caller's word counts that its trace is recorded.
    struct ParentsName(ParentSampling) as "a word on parents" {
        /// It does, either way; `sample` is of the traces that begin here.
        "follow" => ParentSampling::Follow,
        /// It does not: `sample` is of all traces. For listeners that strangers reach.
        "ignore" => ParentSampling::Ignore,
    }
}
