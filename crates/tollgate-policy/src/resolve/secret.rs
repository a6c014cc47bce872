//! Converts keys to the sources of secrets. A policy contains only the sources, and never the
//! secrets.

use crate::decode::{Field, Spanned, Text};
use crate::raw::{PolicyFile, Secret};
use crate::report::Report;
use crate::settings::KeySource;

/// Returns the source of the key with which credentials are hashed, or `None` after reporting a
/// mistake.
pub(super) fn key(file: &PolicyFile, report: &mut Report<'_>) -> Option<KeySource> {
    match &file.secret {
        Field::Absent => Some(KeySource::Random),
        Field::Invalid => None,
        Field::Value(secret) => source(secret, "secret", "TOLLGATE_SECRET", report),
    }
}

/// Returns the source of a secret, or `None` after reporting a mistake. In messages, `what` is the
/// name of the secret, and `usual` is the environment variable that the hint suggests.
pub(super) fn source(
    secret: &Spanned<Secret>,
    what: &str,
    usual: &str,
    report: &mut Report<'_>,
) -> Option<KeySource> {
    match (secret.value.env.given(), secret.value.file.given()) {
        (Some(env), None) => variable(env, what, usual, report),
        (None, Some(file)) => Some(KeySource::File { path: (&file.value.0).into() }),
        (Some(_), Some(file)) => {
            let message =
                format_args!("a {what} has exactly one source, this one has `env` and `file`");
            report.error(file.key, message, "remove one of them");
            None
        }
        (None, None) => {
            if secret.value.env.is_absent() && secret.value.file.is_absent() {
                let message = format_args!("the {what} has no source");
                report.error(secret.at, message, "expected `env` or `file`");
            }
            None
        }
    }
}

fn variable(
    env: &Spanned<Text>,
    what: &str,
    usual: &str,
    report: &mut Report<'_>,
) -> Option<KeySource> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let name = &env.value.0;
    if !name.bytes().all(is_name) || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        let hint = format_args!("expected its name, such as {usual}, not the {what} itself");
        report.hidden_mistake(env.at, "this is not the name of an environment variable", hint);
        return None;
    }
    Some(KeySource::Environment { name: name.clone() })
}
