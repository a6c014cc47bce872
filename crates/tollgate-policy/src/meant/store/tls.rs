//! Certificates.

use std::path::PathBuf;

use super::topology::Ways;
use crate::read::{Field, Text, quoted};
use crate::report::Report;
use crate::settings::{TlsFiles, TlsIdentity};
use crate::span::Span;
use crate::written::Tls;

/// The certificates for what is reached in these `ways`, each of which is called `what`; `None` if
/// something is wrong, which is reported. Where the ways are not known nothing is said of them.
pub(super) fn files(
    field: &Field<Tls>,
    what: &str,
    ways: Option<&Ways>,
    report: &mut Report<'_>,
) -> Option<TlsFiles> {
    fn path(text: &Text) -> PathBuf {
        PathBuf::from(&text.0)
    }
    let given = match field {
        Field::Absent => return Some(TlsFiles::default()),
        Field::Wrong => return None,
        Field::Given(given) => given,
    };
    if let Some(ways) = ways {
        used_by(ways, what, given.key, report);
    }
    let Tls { authorities, certificate, key } = &given.value;
    let identity = match (certificate, key) {
        (Field::Given(certificate), Field::Given(key)) => {
            Some(TlsIdentity { certificate: path(&certificate.value), key: path(&key.value) })
        }
        (Field::Given(alone), Field::Absent) => {
            report.mistake(alone.key, "`certificate` needs its `key`", "the file of the key");
            return None;
        }
        (Field::Absent, Field::Given(alone)) => {
            let hint = "the file of the certificate that the key belongs to";
            report.mistake(alone.key, "`key` needs its `certificate`", hint);
            return None;
        }
        _ => None,
    };
    Some(TlsFiles { authorities: authorities.value().map(path), identity })
}

/// Tells of certificates, given at `at`, that nothing is reached with, or not everything.
fn used_by(ways: &Ways, what: &str, at: Span, report: &mut Report<'_>) {
    if !ways.any_tls {
        let message = format_args!("`tls` is given, but no {what} is reached under TLS");
        report.mistake(at, message, "a URL that asks for TLS begins with rediss://");
    } else if let Some(clear) = &ways.in_clear {
        let message = format_args!("`tls` is given, but not every {what} is reached under TLS");
        let (place, line) = (quoted(&clear.place), clear.line);
        let hint =
            format_args!("{place} on line {line} is not: its URL does not begin with rediss://");
        report.warning(at, message, hint);
    }
}
