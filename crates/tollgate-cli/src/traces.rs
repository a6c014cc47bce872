//! Sets up tracing from the flag, the policy file or the environment.

mod environment;

use clap::Args;
use tollgate::Tracer;
use tollgate::model::Percent;
use tollgate_policy::{DEFAULT_SAMPLE, ParentSampling, TracesSettings};
use tollgate_server::otlp::{
    self, Connector, Endpoint, ExportCounter, Exporter, ExporterIdentity, Sampler,
};

use crate::failure::Failure;
use crate::log;
use crate::version::VERSION;
use environment::Environment;

/// The number of parts into which all traces are divided. The policy file gives the share of
/// recorded traces as a number of these parts.
const PARTS: f64 = 10_000.0;

#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Flags {
    /// Send spans of requests to this collector, which accepts OTLP over HTTP: http://HOST:PORT, or
    /// https
    #[arg(long = "traces", value_name = "URL", help_heading = "Tracing")]
    endpoint: Option<Endpoint>,
}

/// The tracer that opens spans, and the exporter that sends them.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub(crate) tracer: Tracer,
    exporter: Option<Exporter>,
}

/// Starts tracing if it is configured. The flag has precedence over the policy file, and both have
/// precedence over the environment. Must be called in a tokio runtime.
pub(crate) fn start(flags: &Flags, file: Option<&TracesSettings>) -> Result<Traces, Failure> {
    begin(flags, file, &Environment::of_this_process())
}

fn begin(
    flags: &Flags,
    file: Option<&TracesSettings>,
    environment: &Environment,
) -> Result<Traces, Failure> {
    let Some(endpoint) = endpoint(flags, file, environment)? else { return Ok(Traces::default()) };
    let sampler = match file {
        Some(settings) => by_file(settings),
        None => environment
            .sampler()?
            .unwrap_or_else(|| sampler(DEFAULT_SAMPLE, ParentSampling::Follow)),
    };
    let origin = ExporterIdentity {
        service: environment.service(),
        version: VERSION.to_owned(),
        attributes: environment.resource()?,
    };
    let authorities = file.and_then(|settings| settings.authorities.as_deref());
    let connector = Connector::to(&endpoint, authorities.or_else(|| environment.certificate()))?;
    let (tracer, spans) = otlp::tracer(sampler);
    let exporter = Exporter::start(spans, &endpoint, connector, &origin)?;
    log::info(&format_args!("sending spans to {endpoint}"));
    Ok(Traces { tracer, exporter: Some(exporter) })
}

fn endpoint(
    flags: &Flags,
    file: Option<&TracesSettings>,
    environment: &Environment,
) -> Result<Option<Endpoint>, Failure> {
    if environment.is_disabled() {
        return Ok(None);
    }
    let named = file.and_then(|settings| settings.endpoint.as_deref());
    match (&flags.endpoint, named) {
        (Some(endpoint), _) => Ok(Some(endpoint.clone())),
        (None, Some(named)) => {
            let endpoint = named.parse();
            Ok(Some(endpoint.map_err(|error| format!("traces.endpoint is {named:?}: {error}"))?))
        }
        (None, None) => environment.endpoint(),
    }
}

fn by_file(settings: &TracesSettings) -> Sampler {
    sampler(settings.sample, settings.parents)
}

fn sampler(sample: Percent, parents: ParentSampling) -> Sampler {
    let parents = match parents {
        ParentSampling::Follow => otlp::ParentSampling::Follow,
        ParentSampling::Ignore => otlp::ParentSampling::Ignore,
    };
    otlp::sampler(f64::from(sample.parts()) / PARTS, parents)
}

impl Traces {
    /// Returns the counters of the spans, if tracing is on.
    pub(crate) fn counter(&self) -> Option<ExportCounter> {
        self.exporter.as_ref().map(Exporter::counter)
    }

    /// Sends the remaining spans.
    pub(crate) async fn finish(self) {
        if let Some(exporter) = self.exporter {
            exporter.finish().await;
        }
    }
}
