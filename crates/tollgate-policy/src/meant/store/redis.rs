//! The store in Redis or Valkey.

use std::path::PathBuf;
use std::time::Duration;

use super::super::names::Known;
use super::super::secret;
use super::{at_most, revealed, shards};
use crate::read::{Field, Given, Text, quoted};
use crate::report::Report;
use crate::settings::{RedisSettings, RememberRefusals, TlsFiles, TlsIdentity};
use crate::tree::Span;
use crate::written::{PolicyFile, Redis, Subject, Tls};

/// How long a decision may take where nothing is written.
const DEADLINE: Duration = Duration::from_millis(15);

/// The longest that a decision may be waited for.
const MAX_DEADLINE: Duration = Duration::from_secs(10);

/// The most nodes that may share the limits.
const MAX_NODES: u32 = 1_000_000;

/// The settings as meant; `None` if something is wrong, which is reported.
pub(super) fn settings(
    given: &Given<Redis>,
    file: &PolicyFile,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<RedisSettings> {
    let redis = &given.value;
    let shards = shards::shards(&redis.shards, report);
    let nodes = at_most(&redis.nodes, MAX_NODES, "the number of nodes is", report);
    let deadline = deadline(redis, report);
    let route_by = redis.route_by.given().map(|name| {
        subjects.index(&name.value.0, name.at, report).map(|_| Box::from(&*name.value.0))
    });
    let password = redis
        .password
        .given()
        .map(|password| secret::source(password, "password", "TOLLGATE_REDIS_PASSWORD", report));
    let tls = tls(redis, shards.as_ref(), report);
    Some(RedisSettings {
        shards: shards?.shards,
        route_by: none_or_right(route_by)?,
        deadline: deadline?,
        nodes: nodes?,
        clock: redis.clock.value().map(|clock| clock.0).unwrap_or_default(),
        reads: redis.reads.value().map(|reads| reads.0).unwrap_or_default(),
        remember_refusals: match redis.remember_refusals.value() {
            Some(remember) if !remember.0 => RememberRefusals::AlwaysAsk,
            _ => RememberRefusals::Remember,
        },
        step: redis.step.value().map(|step| step.0).unwrap_or_default(),
        user: redis.user.value().map(|user| Box::from(&*user.0)),
        password: none_or_right(password)?,
        tls: tls?,
        revealed: revealed::names(file),
    })
}

/// `None` only for what is written and wrong.
fn none_or_right<T>(written: Option<Option<T>>) -> Option<Option<T>> {
    match written {
        None => Some(None),
        Some(right) => right.map(Some),
    }
}

fn deadline(redis: &Redis, report: &mut Report<'_>) -> Option<Duration> {
    let given = match &redis.deadline {
        Field::Absent => return Some(DEADLINE),
        Field::Wrong => return None,
        Field::Given(given) => given,
    };
    let deadline = Duration::from_millis(given.value.0.get());
    if deadline > MAX_DEADLINE {
        let message = format_args!("a deadline of {}", given.value.0);
        report.mistake(given.at, message, "expected 1ms to 10s: a request waits for it");
        return None;
    }
    Some(deadline)
}

/// The certificates, if any server is spoken to under TLS. Shards that are wrong name none.
fn tls(
    redis: &Redis,
    shards: Option<&shards::Shards>,
    report: &mut Report<'_>,
) -> Option<TlsFiles> {
    fn path(text: &Text) -> PathBuf {
        PathBuf::from(&text.0)
    }
    let given = match &redis.tls {
        Field::Absent => return Some(TlsFiles::default()),
        Field::Wrong => return None,
        Field::Given(given) => given,
    };
    if let Some(shards) = shards {
        used_by(shards, given.key, report);
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

/// Tells of certificates, given at `at`, that no server is reached with, or not every one.
fn used_by(shards: &shards::Shards, at: Span, report: &mut Report<'_>) {
    if !shards.any_tls {
        let hint = "a URL that asks for TLS begins with rediss://";
        report.mistake(at, "`tls` is given, but no server is reached under TLS", hint);
    } else if let Some(clear) = &shards.in_clear {
        let message = "`tls` is given, but not every server is reached under TLS";
        let (place, line) = (quoted(&clear.place), clear.line);
        let hint =
            format_args!("{place} on line {line} is not: its URL does not begin with rediss://");
        report.warning(at, message, hint);
    }
}
