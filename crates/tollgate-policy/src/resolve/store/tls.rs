//! Converts the key `tls` to the certificates for connections to servers.

use std::path::PathBuf;

use super::topology::ServerTransports;
use crate::decode::{Field, Text, quoted};
use crate::raw::Tls;
use crate::report::Report;
use crate::settings::{TlsFiles, TlsIdentity};
use crate::span::Span;

/// Returns the certificates for connections to servers, or `None` after reporting a mistake. `what`
/// is the name of the servers in messages. `ways` are the transports to the servers: if none of
/// them uses TLS, the certificates are reported as useless. With `None`, this is not checked.
pub(super) fn files(
    field: &Field<Tls>,
    what: &str,
    ways: Option<&ServerTransports>,
    report: &mut Report<'_>,
) -> Option<TlsFiles> {
    fn path(text: &Text) -> PathBuf {
        PathBuf::from(&text.0)
    }
    let given = match field {
        Field::Absent => return Some(TlsFiles::default()),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    if let Some(ways) = ways {
        used_by(ways, what, given.key, report);
    }
    let Tls { ca, certificate, key } = &given.value;
    let identity = match (certificate, key) {
        (Field::Value(certificate), Field::Value(key)) => {
            Some(TlsIdentity { certificate: path(&certificate.value), key: path(&key.value) })
        }
        (Field::Value(present), Field::Absent) => {
            report.error(present.key, "`certificate` needs its `key`", "the file of the key");
            return None;
        }
        (Field::Absent, Field::Value(present)) => {
            let hint = "the file of the certificate that the key belongs to";
            report.error(present.key, "`key` needs its `certificate`", hint);
            return None;
        }
        _ => None,
    };
    Some(TlsFiles { authorities: ca.value().map(path), identity })
}

/// Reports certificates that no connection in `ways` uses, and warns if some connections do not use
/// TLS. `at` is the position of the key `tls`.
fn used_by(ways: &ServerTransports, what: &str, at: Span, report: &mut Report<'_>) {
    if !ways.any_tls {
        let message = format_args!("`tls` is set, but no {what} uses TLS");
        report.error(at, message, "the URL of a server with TLS begins with rediss://");
    } else if let Some(clear) = &ways.in_clear {
        let message = format_args!("`tls` is set, but not every {what} uses TLS");
        let (address, line) = (quoted(&clear.address), clear.line);
        let hint = format_args!(
            "{address} on line {line} does not: its URL does not begin with rediss://"
        );
        report.warning(at, message, hint);
    }
}
