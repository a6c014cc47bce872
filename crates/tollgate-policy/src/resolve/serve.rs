//! Converts the key `serve` to the settings of listeners: their addresses, tokens and certificates.

use std::net::SocketAddr;

use super::secret;
use crate::decode::{Field, OneOrMore, Spanned, Text, quoted};
use crate::raw::{Dashboard, Listener, ListenerTls, PolicyFile};
use crate::report::Report;
use crate::settings::{
    DashboardMode, DashboardSettings, ListenerSettings, ListenerTlsFiles, ServeSettings,
};

/// The maximum length of a host name in bytes (RFC 1035).
const LONGEST_HOST: usize = 253;

/// Returns the listeners of the file, or `None` after reporting a mistake.
pub(super) fn serve(file: &PolicyFile, report: &mut Report<'_>) -> Option<ServeSettings> {
    let listeners = match &file.serve {
        Field::Absent => return Some(ServeSettings::default()),
        Field::Invalid => return None,
        Field::Value(given) => &given.value,
    };
    let mut read = |field: &Field<Listener>, names: HostNames| match field {
        Field::Absent => Some(None),
        Field::Invalid => None,
        Field::Value(given) => listener(given, names, report).map(Some),
    };
    let http = read(&listeners.http, HostNames::Allowed);
    let grpc = read(&listeners.grpc, HostNames::Meaningless);
    let resp = read(&listeners.resp, HostNames::Meaningless);
    let admin = read(&listeners.admin, HostNames::OfTheDashboard);
    let dashboard = match &listeners.dashboard {
        Field::Absent => Some(DashboardSettings::default()),
        Field::Invalid => None,
        Field::Value(given) => dashboard(&given.value, report),
    };
    Some(ServeSettings {
        http: http?,
        grpc: grpc?,
        resp: resp?,
        admin: admin?,
        dashboard: dashboard?,
    })
}

fn dashboard(given: &Dashboard, report: &mut Report<'_>) -> Option<DashboardSettings> {
    let shown = match &given.enabled {
        Field::Absent => Some(DashboardMode::Enabled),
        Field::Invalid => None,
        Field::Value(flag) => {
            Some(if flag.value.0 { DashboardMode::Enabled } else { DashboardMode::Disabled })
        }
    };
    let samples_traffic = match &given.traffic_sample {
        Field::Absent => Some(true),
        Field::Invalid => None,
        Field::Value(flag) => Some(flag.value.0),
    };
    let hosts = hosts(&given.hosts, report);
    Some(DashboardSettings { shown: shown?, samples_traffic: samples_traffic?, hosts: hosts? })
}

/// Whether the settings of a listener can have the key `hosts`.
#[derive(Clone, Copy, Debug)]
enum HostNames {
    Allowed,
    /// The listener does not have the key. The admin listener uses the host names of the key
    /// `dashboard`.
    OfTheDashboard,
    Meaningless,
}

fn hosts(given: &Field<OneOrMore<Text>>, report: &mut Report<'_>) -> Option<Vec<Box<str>>> {
    match given {
        Field::Absent => Some(Vec::new()),
        Field::Invalid => None,
        Field::Value(names) => {
            // All host names are checked before the function returns, to report every mistake.
            let hosts: Vec<_> = names.value.0.iter().map(|name| host(name, report)).collect();
            hosts.into_iter().collect()
        }
    }
}

/// Returns a host name in the form that browsers send, without a port. Returns `None` after
/// reporting a mistake.
fn host(name: &Spanned<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let text = name.value.0.to_ascii_lowercase();
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if text.len() <= LONGEST_HOST && text.bytes().all(is_known) {
        return Some(text.into());
    }
    let message = format_args!("{} is not a host name", quoted(&name.value.0));
    report.error(name.at, message, "expected a name such as tollgate.example.com, without a port");
    None
}

fn listener(
    given: &Spanned<Listener>,
    names: HostNames,
    report: &mut Report<'_>,
) -> Option<ListenerSettings> {
    let listener = &given.value;
    if let Field::Value(hosts) = &listener.hosts {
        let hint = match names {
            HostNames::Allowed => None,
            HostNames::OfTheDashboard => Some("use `serve: { dashboard: { hosts: … } }`"),
            HostNames::Meaningless => Some("only the HTTP listener checks host names: remove it"),
        };
        if let Some(hint) = hint {
            report.error(hosts.at, "`hosts` is a key of the HTTP listener", hint);
            return None;
        }
    }
    let hosts = hosts(&listener.hosts, report);
    let tokens = match &listener.tokens {
        Field::Absent => Some(None),
        Field::Invalid => None,
        Field::Value(tokens) => {
            secret::source(tokens, "token", "TOLLGATE_TOKENS", report).map(Some)
        }
    };
    let tls = match &listener.tls {
        Field::Absent => Some(None),
        Field::Invalid => None,
        Field::Value(tls) => certificates(&tls.value).map(Some),
    };
    let listen = address(listener.listen.given()?, report);
    Some(ListenerSettings { listen: listen?, tokens: tokens?, tls: tls?, hosts: hosts? })
}

fn address(listen: &Spanned<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let text = &*listen.value.0;
    let named = |prefix: &str| text.strip_prefix(prefix);
    let is_unix = named("unix:").is_some_and(|path| path.starts_with('/'));
    let is_inherited = named("systemd:").is_some_and(|name| !name.is_empty());
    if is_unix || is_inherited || text.parse::<SocketAddr>().is_ok() {
        return Some(text.into());
    }
    let message = format_args!("{} is not a listen address", quoted(text));
    report.error(listen.at, message, "expected 127.0.0.1:8080, unix:/path or systemd:NAME");
    None
}

fn certificates(tls: &ListenerTls) -> Option<ListenerTlsFiles> {
    let clients = match &tls.client_ca {
        Field::Absent => None,
        Field::Invalid => return None,
        Field::Value(given) => Some((&given.value.0).into()),
    };
    let (certificate, key) = (tls.certificate.value()?, tls.key.value()?);
    Some(ListenerTlsFiles { certificate: (&certificate.0).into(), key: (&key.0).into(), clients })
}
