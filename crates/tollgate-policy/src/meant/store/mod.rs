//! The store: one of several kinds, each with its settings.

mod memcached;
mod memory;
mod redis;
mod revealed;
mod server;
mod shards;
mod tls;
mod topology;

use std::num::NonZeroU32;

use super::names::Known;
use crate::read::{Field, Given, Whole};
use crate::report::Report;
use crate::settings::StoreSettings;
use crate::tree::Span;
use crate::written::{PolicyFile, Store, Subject};

/// Where the counters are kept; `None` if something is wrong, which is reported.
pub(super) fn store(
    file: &PolicyFile,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<StoreSettings> {
    let given = match &file.store {
        Field::Absent => {
            revealed::warn_in_memory(file, report);
            return Some(StoreSettings::default());
        }
        Field::Wrong => return None,
        Field::Given(given) => given,
    };
    if is_in_memcached_too(&given.value, report) {
        return None;
    }
    match (&given.value.memory, &given.value.redis) {
        (Field::Given(memory), Field::Absent) => {
            revealed::warn_in_memory(file, report);
            memory::bounds(&memory.value, report).map(StoreSettings::Memory)
        }
        (Field::Absent, Field::Given(redis)) => {
            if file.secret.is_absent() {
                without_secret(redis.key, report);
            }
            let settings = redis::settings(redis, file, subjects, report)?;
            Some(StoreSettings::Redis(Box::new(settings)))
        }
        (Field::Given(memory), Field::Given(redis)) => {
            let (first, second) = match (place(memory.key), place(redis.key)) {
                (memory_at, redis_at) if memory_at < redis_at => (memory.key, redis.key),
                _ => (redis.key, memory.key),
            };
            let message = "a store is in `memory` or in `redis`, this one is in both";
            let hint = format_args!("leave one of them out; the other is on line {}", first.line);
            report.mistake(second, message, hint);
            None
        }
        (Field::Absent, Field::Absent) => match &given.value.memcached {
            Field::Given(memcached) => {
                if file.secret.is_absent() {
                    without_secret(memcached.key, report);
                }
                let settings = memcached::settings(memcached, file, report)?;
                Some(StoreSettings::Memcached(Box::new(settings)))
            }
            Field::Absent => {
                let hint = "expected `memory`, `redis` or `memcached`";
                report.mistake(given.at, "the store is nowhere", hint);
                None
            }
            Field::Wrong => None,
        },
        // What is wrong with either is reported.
        (Field::Wrong, _) | (_, Field::Wrong) => None,
    }
}

/// Whether a store in memcached is in memory or in Redis as well, which is reported.
fn is_in_memcached_too(store: &Store, report: &mut Report<'_>) -> bool {
    let Field::Given(memcached) = &store.memcached else { return false };
    let elsewhere = !store.memory.is_absent() || !store.redis.is_absent();
    if elsewhere {
        let message = "a store is in `memory`, `redis` or `memcached`, this one is in two places";
        report.mistake(memcached.key, message, "leave all but one of them out");
    }
    elsewhere
}

fn place(at: Span) -> (usize, usize) {
    (at.line, at.column)
}

fn without_secret(at: Span, report: &mut Report<'_>) {
    let message = "without a `secret` each process counts for itself, and anew when it starts";
    let hint = "subjects are hashed under it in the store: secret: { env: TOLLGATE_SECRET }";
    report.warning(at, message, hint);
}

/// A number from 1 to `most` of what `what` counts, or 1 if nothing is written.
fn at_most(
    field: &Field<Whole>,
    most: u32,
    what: &str,
    report: &mut Report<'_>,
) -> Option<NonZeroU32> {
    let given: &Given<Whole> = match field {
        Field::Absent => return Some(NonZeroU32::MIN),
        Field::Wrong => return None,
        Field::Given(given) => given,
    };
    let number = u32::try_from(given.value.0).ok().filter(|number| *number <= most);
    let number = number.and_then(NonZeroU32::new);
    if number.is_none() {
        let message = format_args!("{what} {}", given.value.0);
        report.mistake(given.at, message, format_args!("expected 1 to {most}"));
    }
    number
}
