//! Proxies, the secret and the store.

use tollgate_core::policy::address::MAX_HOPS;
use tollgate_core::policy::{Forwarding, Network};

use crate::read::{Given, OneOrMore, Whole, quoted};
use crate::report::Report;
use crate::settings::{KeySource, MemoryBounds, Settings, StoreSettings};
use crate::written::PolicyFile;

/// Which proxies are believed; `None` if something is wrong, which is reported.
pub(super) fn forwarding(file: &PolicyFile, report: &mut Report<'_>) -> Option<Forwarding> {
    let mut forwarding = Forwarding::default();
    let networks = file.trusted_proxies.value().map_or(&[][..], |OneOrMore(given)| given);
    for given in networks {
        match Network::parse(&given.value.0) {
            Ok(network) => forwarding.trusted.push(network),
            Err(error) => {
                let message = format_args!("{} is no network", quoted(&given.value.0));
                report.mistake(given.at, message, error);
            }
        }
    }
    let Some(forwarded) = file.forwarded.given() else { return Some(forwarding) };
    if file.trusted_proxies.is_absent() {
        let hint = "the header is not read without `trusted_proxies`: anybody can write it";
        report.warning(forwarded.key, "`forwarded` does nothing", hint);
    }
    if let Some(header) = forwarded.value.header.value() {
        forwarding.header = header.0;
    }
    if let Some(hops) = forwarded.value.hops.given() {
        let most = usize::try_from(hops.value.0).ok().filter(|hops| (1..=MAX_HOPS).contains(hops));
        if most.is_none() {
            let message = format_args!("{} proxies one behind the other", hops.value.0);
            report.mistake(hops.at, message, format_args!("expected 1 to {MAX_HOPS}"));
        }
        forwarding.hops = most;
    }
    Some(forwarding)
}

/// What the file says beside the policy; `None` if something is wrong, which is reported.
pub(super) fn settings(file: &PolicyFile, report: &mut Report<'_>) -> Option<Settings> {
    let key = key_source(file, report);
    let mut memory = MemoryBounds::default();
    if let Some(bounds) = file.store.value().and_then(|store| store.memory.value()) {
        if let Some(entries) = bounds.max_entries.given() {
            memory.max_entries = at_least_one(entries, report)?;
        }
        if let Some(bytes) = bounds.max_bytes.value() {
            memory.max_bytes = bytes.0;
        }
    }
    Some(Settings { key: key?, store: StoreSettings::Memory(memory) })
}

fn key_source(file: &PolicyFile, report: &mut Report<'_>) -> Option<KeySource> {
    let Some(secret) = file.secret.given() else { return Some(KeySource::Random) };
    match (secret.value.env.given(), secret.value.file.given()) {
        (Some(env), None) => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let name = &env.value.0;
            if !name.bytes().all(is_name)
                || name.starts_with(|letter: char| letter.is_ascii_digit())
            {
                let message = format_args!("{} is no environment variable", quoted(name));
                let hint = "expected its name, such as TOLLGATE_SECRET, not the secret itself";
                report.mistake(env.at, message, hint);
                return None;
            }
            Some(KeySource::Environment { name: name.clone() })
        }
        (None, Some(file)) => Some(KeySource::File { path: (&file.value.0).into() }),
        (Some(_), Some(file)) => {
            let message = "a secret has one source, this one has `env` and `file`";
            report.mistake(file.key, message, "leave one of them out");
            None
        }
        (None, None) => {
            if secret.value.env.is_absent() && secret.value.file.is_absent() {
                report.mistake(secret.at, "the secret has no source", "expected `env` or `file`");
            }
            None
        }
    }
}

fn at_least_one(given: &Given<Whole>, report: &mut Report<'_>) -> Option<u64> {
    if given.value.0 == 0 {
        report.plain_mistake(given.at, "it must be at least 1");
        return None;
    }
    Some(given.value.0)
}
