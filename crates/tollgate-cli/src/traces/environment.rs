//! Reads the environment variables of OpenTelemetry that select the recorded traces and the
//! collector.
//!
//! The module is written by hand, 110 lines, because `opentelemetry_sdk` 0.33 ignores a value that
//! it cannot read. This module reports such a value as an error that names the expected values.
//! `opentelemetry-otlp` reads the variables for the headers and the compression of the export.

use std::env;
use std::path::Path;

use tollgate_server::otlp::{Endpoint, ParentSampling, Sampler, sampler};

use crate::failure::Failure;

const SERVICE: &str = "tollgate";

/// The most attributes of the process that are sent.
const MAX_RESOURCE: usize = 32;

/// The environment variables that are read. An empty variable counts as not set, as OpenTelemetry
/// requires.
#[derive(Debug, Default)]
pub(super) struct Environment {
    disabled: Option<String>,
    endpoint: Option<String>,
    traces_endpoint: Option<String>,
    certificate: Option<String>,
    traces_certificate: Option<String>,
    sampler: Option<String>,
    sampler_argument: Option<String>,
    service: Option<String>,
    resource: Option<String>,
}

impl Environment {
    pub(super) fn of_this_process() -> Self {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            disabled: set("OTEL_SDK_DISABLED"),
            endpoint: set("OTEL_EXPORTER_OTLP_ENDPOINT"),
            traces_endpoint: set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
            certificate: set("OTEL_EXPORTER_OTLP_CERTIFICATE"),
            traces_certificate: set("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"),
            sampler: set("OTEL_TRACES_SAMPLER"),
            sampler_argument: set("OTEL_TRACES_SAMPLER_ARG"),
            service: set("OTEL_SERVICE_NAME"),
            resource: set("OTEL_RESOURCE_ATTRIBUTES"),
        }
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.disabled.as_deref().is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Returns the URL to which traces are sent. This URL is the value of the variable for traces,
    /// or a path below the URL in the variable for all signals.
    pub(super) fn endpoint(&self) -> Result<Option<Endpoint>, Failure> {
        let (name, value, endpoint) = match (&self.traces_endpoint, &self.endpoint) {
            (Some(url), _) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url, Endpoint::exactly(url)),
            (None, Some(base)) => ("OTEL_EXPORTER_OTLP_ENDPOINT", base, base.parse()),
            (None, None) => return Ok(None),
        };
        Ok(Some(endpoint.map_err(|error| format!("{name} is {value:?}: {error}"))?))
    }

    /// Returns the file of the certificate authorities to trust for the collector's certificate, or
    /// `None` if no variable names a file.
    pub(super) fn certificate(&self) -> Option<&Path> {
        self.traces_certificate.as_ref().or(self.certificate.as_ref()).map(Path::new)
    }

    /// Returns the sampler that selects the recorded traces, if a variable sets it.
    pub(super) fn sampler(&self) -> Result<Option<Sampler>, Failure> {
        let Some(name) = &self.sampler else { return Ok(None) };
        let (share, parents) = match &**name {
            "always_on" => (1.0, ParentSampling::Ignore),
            "always_off" => (0.0, ParentSampling::Ignore),
            "traceidratio" => (self.ratio()?, ParentSampling::Ignore),
            "parentbased_always_on" => (1.0, ParentSampling::Follow),
            "parentbased_always_off" => (0.0, ParentSampling::Follow),
            "parentbased_traceidratio" => (self.ratio()?, ParentSampling::Follow),
            other => {
                let known =
                    "always_on, always_off, traceidratio, or one of these after parentbased_";
                return Err(format!("OTEL_TRACES_SAMPLER is {other:?}; expected {known}").into());
            }
        };
        Ok(Some(sampler(share, parents)))
    }

    /// Returns the share in the sampler's argument.
    fn ratio(&self) -> Result<f64, Failure> {
        let text = self.sampler_argument.as_deref().unwrap_or("1");
        match text.parse::<f64>() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
            _ => {
                let wrong =
                    format!("OTEL_TRACES_SAMPLER_ARG is {text:?}; expected a share from 0 to 1");
                Err(wrong.into())
            }
        }
    }

    pub(super) fn service(&self) -> String {
        self.service.clone().unwrap_or_else(|| SERVICE.to_owned())
    }

    /// Returns further attributes of the process, from `key=value,key=value`.
    pub(super) fn resource(&self) -> Result<Vec<(String, String)>, Failure> {
        let text = self.resource.as_deref().unwrap_or_default();
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let read = |pair: &str| match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err(format!("OTEL_RESOURCE_ATTRIBUTES has {pair:?}; expected key=value").into()),
        };
        // The service name has a variable of its own.
        let pairs = pairs.filter(|pair| !pair.starts_with("service.name="));
        pairs.take(MAX_RESOURCE).map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_variable_for_traces_is_taken_as_it_is_and_goes_first() {
        let base = Environment { endpoint: variable("http://a:4318"), ..Environment::default() };
        assert_eq!(base.endpoint().unwrap().unwrap().to_string(), "http://a:4318/v1/traces");
        let both = Environment { traces_endpoint: variable("http://b:4318/x"), ..base };
        assert_eq!(both.endpoint().unwrap().unwrap().to_string(), "http://b:4318/x");
        assert!(Environment::default().endpoint().unwrap().is_none());
        let wrong = Environment { endpoint: variable("grpc://a:4317"), ..Environment::default() };
        let message = wrong.endpoint().unwrap_err().to_string();
        assert!(message.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{message}");
    }

    #[test]
    fn samplers_go_by_their_names_and_shares() {
        let read = |name: &str, argument: Option<&str>| {
            let sampler_argument = argument.map(str::to_owned);
            Environment { sampler: variable(name), sampler_argument, ..Environment::default() }
                .sampler()
        };
        for (name, argument, share, parents) in [
            ("always_on", None, 1.0, ParentSampling::Ignore),
            ("always_off", None, 0.0, ParentSampling::Ignore),
            ("traceidratio", Some("0.25"), 0.25, ParentSampling::Ignore),
            ("parentbased_traceidratio", Some("0.001"), 0.001, ParentSampling::Follow),
            ("parentbased_traceidratio", None, 1.0, ParentSampling::Follow),
        ] {
            let expected = format!("{:?}", Some(sampler(share, parents)));
            assert_eq!(format!("{:?}", read(name, argument).unwrap()), expected, "{name}");
        }
        for (name, argument) in [
            ("sometimes", None),
            ("traceidratio", Some("2")),
            ("traceidratio", Some("NaN")),
            ("traceidratio", Some("half")),
        ] {
            assert!(read(name, argument).is_err(), "{name} {argument:?}");
        }
        assert!(Environment::default().sampler().unwrap().is_none());
    }

    #[test]
    fn what_else_is_reported_is_read_pair_by_pair() {
        let resource = |text: &str| {
            Environment { resource: variable(text), ..Environment::default() }.resource()
        };
        let pairs = resource("deployment.environment=prod, service.name=x,host.name=a").unwrap();
        let expected = [("deployment.environment", "prod"), ("host.name", "a")];
        assert_eq!(pairs, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert!(resource("prod").is_err());
    }
}
