//! Doors: where each listens, and who may enter.

use std::net::SocketAddr;

use super::secret;
use crate::read::{Field, Given, Text, quoted};
use crate::report::Report;
use crate::settings::{DashboardSettings, DoorSettings, DoorTlsFiles, ServeSettings, Shown};
use crate::written::{Dashboard, Door, DoorTls, PolicyFile};

/// The longest name of a host (RFC 1035), in bytes.
const LONGEST_HOST: usize = 253;

/// The doors that the file opens; `None` if something is wrong, which is reported.
pub(super) fn serve(file: &PolicyFile, report: &mut Report<'_>) -> Option<ServeSettings> {
    let doors = match &file.serve {
        Field::Absent => return Some(ServeSettings::default()),
        Field::Wrong => return None,
        Field::Given(given) => &given.value,
    };
    let mut read = |field: &Field<Door>| match field {
        Field::Absent => Some(None),
        Field::Wrong => None,
        Field::Given(given) => door(given, report).map(Some),
    };
    let (http, grpc) = (read(&doors.http), read(&doors.grpc));
    let (resp, admin) = (read(&doors.resp), read(&doors.admin));
    let dashboard = match &doors.dashboard {
        Field::Absent => Some(DashboardSettings::default()),
        Field::Wrong => None,
        Field::Given(given) => dashboard(&given.value, report),
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
    let shown = match &given.show {
        Field::Absent => Some(Shown::Yes),
        Field::Wrong => None,
        Field::Given(flag) => Some(if flag.value.0 { Shown::Yes } else { Shown::No }),
    };
    let hosts = match &given.hosts {
        Field::Absent => Some(Vec::new()),
        Field::Wrong => None,
        Field::Given(names) => {
            // Every name is looked at, so that all mistakes are told.
            let hosts: Vec<_> = names.value.0.iter().map(|name| host(name, report)).collect();
            hosts.into_iter().collect()
        }
    };
    Some(DashboardSettings { shown: shown?, hosts: hosts? })
}

/// A host's name as a browser writes it, without a port.
fn host(name: &Given<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let text = name.value.0.to_ascii_lowercase();
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if text.len() <= LONGEST_HOST && text.bytes().all(is_known) {
        return Some(text.into());
    }
    let message = format_args!("{} is no name of a host", quoted(&name.value.0));
    report.mistake(name.at, message, "expected one such as tollgate.example.com, without a port");
    None
}

fn door(given: &Given<Door>, report: &mut Report<'_>) -> Option<DoorSettings> {
    let door = &given.value;
    let tokens = match &door.tokens {
        Field::Absent => Some(None),
        Field::Wrong => None,
        Field::Given(tokens) => {
            secret::source(tokens, "token", "TOLLGATE_TOKENS", report).map(Some)
        }
    };
    let tls = match &door.tls {
        Field::Absent => Some(None),
        Field::Wrong => None,
        Field::Given(tls) => certificates(&tls.value).map(Some),
    };
    let listen = place(door.listen.given()?, report);
    Some(DoorSettings { listen: listen?, tokens: tokens?, tls: tls? })
}

fn place(listen: &Given<Text>, report: &mut Report<'_>) -> Option<Box<str>> {
    let text = &*listen.value.0;
    let named = |prefix: &str| text.strip_prefix(prefix);
    let is_unix = named("unix:").is_some_and(|path| path.starts_with('/'));
    let is_inherited = named("systemd:").is_some_and(|name| !name.is_empty());
    if is_unix || is_inherited || text.parse::<SocketAddr>().is_ok() {
        return Some(text.into());
    }
    let message = format_args!("{} is no place to listen", quoted(text));
    report.mistake(listen.at, message, "expected 127.0.0.1:8080, unix:/path or systemd:NAME");
    None
}

fn certificates(tls: &DoorTls) -> Option<DoorTlsFiles> {
    let clients = match &tls.clients {
        Field::Absent => None,
        Field::Wrong => return None,
        Field::Given(given) => Some((&given.value.0).into()),
    };
    let (certificate, key) = (tls.certificate.value()?, tls.key.value()?);
    Some(DoorTlsFiles { certificate: (&certificate.0).into(), key: (&key.0).into(), clients })
}
