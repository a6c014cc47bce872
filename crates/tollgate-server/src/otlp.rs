//! The export of spans to a collector, by OTLP over HTTP, with OpenTelemetry's SDK and exporter.
//!
//! [`tracer`] opens spans, and puts ended spans into a bounded queue. [`Exporter::start`] posts the
//! spans in batches, as protobuf, to `ENDPOINT/v1/traces`. Requests never wait for the export:
//! spans that the collector does not accept in time are counted and dropped.
//!
//! The queue, the task that empties the queue, and the HTTP client are written by hand, 300 lines.
//! The batch processor of `opentelemetry_sdk` 0.33 reports dropped spans only in a log line when
//! the processor ends. `opentelemetry-otlp` 0.33 only logs the number of spans that a collector
//! rejected, so rejected spans would be counted as exported. The HTTP clients of
//! `opentelemetry-otlp` also bring a TLS implementation of their own.

mod client;
mod connector;
mod endpoint;
mod exporter;
mod queue;
mod sampler;

pub use client::EXPORT_ATTEMPTS;
pub use connector::{Connector, ConnectorError, EXPORT_TIMEOUT};
pub use endpoint::{Endpoint, EndpointError};
pub use exporter::{
    BATCH_WAIT, ExportCounter, ExportCounts, Exporter, ExporterError, ExporterIdentity,
    FLUSH_TIMEOUT, MAX_BATCH,
};
pub use opentelemetry_sdk::trace::{Sampler, SpanData};
pub use queue::{MAX_ATTRIBUTES, SPAN_QUEUE, SpanReceiver, tracer};
pub use sampler::{ParentSampling, sampler};
