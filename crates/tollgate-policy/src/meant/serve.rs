//! Doors: where each listens, and who may enter.

use std::net::SocketAddr;

use super::secret;
use crate::read::{Field, Given, Text, quoted};
use crate::report::Report;
use crate::settings::{DoorSettings, DoorTlsFiles, ServeSettings};
use crate::written::{Door, DoorTls, PolicyFile};

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
    Some(ServeSettings { http: http?, grpc: grpc?, resp: resp?, admin: admin? })
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
