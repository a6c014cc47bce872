//! The export of spans to a collector, by OTLP over HTTP.
//!
//! [`Exporter::start`] takes the [`Spans`](tollgate::trace::SpanReceiver) of a tracer and posts
//! them in batches, as protobuf, to `ENDPOINT/v1/traces`. Requests never wait for the export: spans
//! that the collector does not accept in time are counted and dropped.
//!
//! Written by hand: `opentelemetry-otlp` 0.33 writes the number of spans that a collector rejected to
//! the log and does not return it, so they would be counted as exported. With `opentelemetry_sdk`
//! and `tracing-opentelemetry`, it adds 15 crates to the 247 of the binary.

mod connector;
mod endpoint;
mod exporter;
mod wire;

pub use connector::{Connector, ConnectorError, EXPORT_TIMEOUT};
pub use endpoint::{Endpoint, EndpointError};
pub use exporter::{
    BATCH_WAIT, EXPORT_ATTEMPTS, ExportCounter, ExportCounts, Exporter, ExporterIdentity,
    FLUSH_TIMEOUT, MAX_BATCH,
};
