//! Converts the key `store` to the settings of the store.

mod deadline;
mod memcached;
mod memory;
mod migration;
mod previous;
mod redis;
pub(super) mod revealed;
mod server;
mod shards;
mod tls;
mod topology;

use std::num::NonZeroU32;

use super::names::NameTable;
use crate::decode::{Field, Integer, Spanned};
use crate::raw::{Memcached, Memory, PolicyFile, Redis, Store, Subject};
use crate::report::Report;
use crate::settings::{MigrationStoreSettings, StoreSettings};
use crate::span::Span;

/// Returns the store settings, or `None` after reporting a mistake.
pub(super) fn store(
    file: &PolicyFile,
    subjects: &mut NameTable<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<StoreSettings> {
    let given = match &file.store {
        Field::Absent => return Some(StoreSettings::default()),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let Store { memory, redis, memcached, rollout, shadow } = &given.value;
    let keys = [key(memory), key(redis), key(memcached), key(rollout), key(shadow)];
    let is_invalid = [memory.is_invalid(), redis.is_invalid(), memcached.is_invalid()];
    if is_invalid.contains(&true) || rollout.is_invalid() || shadow.is_invalid() {
        return None;
    }
    if !is_one(given.at, &keys, ANY, report) {
        return None;
    }
    match (rollout, shadow) {
        (Field::Value(rollout), _) => migration::rollout(rollout, file, subjects, report)
            .map(|settings| StoreSettings::Rollout(Box::new(settings))),
        (_, Field::Value(shadow)) => migration::shadow(shadow, file, subjects, report)
            .map(|settings| StoreSettings::Shadow(Box::new(settings))),
        _ => {
            let kinds = StoreKinds { memory, redis, memcached };
            kinds.settings(file, subjects, report).map(StoreSettings::from)
        }
    }
}

/// The names of the keys that select a store, for messages.
const ANY: &str = "`memory`, `redis`, `memcached`, `rollout` or `shadow`";
const ONE_OF_TWO: &str = "`memory`, `redis` or `memcached`";

/// The keys that select the kind of a store: those of the policy's store, or of one of the two
/// stores in a rollout or a shadow store.
struct StoreKinds<'f> {
    memory: &'f Field<Memory>,
    redis: &'f Field<Redis>,
    memcached: &'f Field<Memcached>,
}

impl StoreKinds<'_> {
    /// Returns the settings of the configured store, or `None` after reporting a mistake.
    fn settings(
        &self,
        file: &PolicyFile,
        subjects: &mut NameTable<'_, Subject>,
        report: &mut Report<'_>,
    ) -> Option<MigrationStoreSettings> {
        let shared = self.redis.given().map(|redis| redis.key);
        let shared = shared.or_else(|| self.memcached.given().map(|memcached| memcached.key));
        if let Some(key) = shared.filter(|_| file.secret.is_absent()) {
            without_secret(key, report);
        }
        if let Some(redis) = self.redis.given() {
            let settings = redis::settings(redis, file, subjects, report)?;
            return Some(MigrationStoreSettings::Redis(Box::new(settings)));
        }
        if let Some(memcached) = self.memcached.given() {
            let settings = memcached::settings(memcached, file, report)?;
            return Some(MigrationStoreSettings::Memcached(Box::new(settings)));
        }
        memory::bounds(self.memory.value()?, report).map(MigrationStoreSettings::Memory)
    }
}

fn key<T>(field: &Field<T>) -> Option<Span> {
    field.given().map(|given| given.key)
}

/// Returns whether exactly one of the keys that select a store is present. Reports a mistake if
/// none or several are. `keys` are the positions of the keys that are present, and `expected`
/// names all of them.
fn is_one(at: Span, keys: &[Option<Span>], expected: &str, report: &mut Report<'_>) -> bool {
    let mut given: Vec<Span> = keys.iter().flatten().copied().collect();
    given.sort_by_key(|key| (key.line, key.column));
    match given[..] {
        [_] => true,
        [] => {
            report.error(at, "a store has no kind", format_args!("expected {expected}"));
            false
        }
        [first, second, ..] => {
            let message = format_args!("a store is exactly one of {expected}, this one has two");
            let hint = format_args!("remove one of them; the other is on line {}", first.line);
            report.error(second, message, hint);
            false
        }
    }
}

fn without_secret(at: Span, report: &mut Report<'_>) {
    let message =
        "without a `secret` every process has separate counters, which end with the process";
    let hint = "the store's keys are hashed with it: add secret: { env: TOLLGATE_SECRET }";
    report.warning(at, message, hint);
}

/// Returns the value of a key, which must be from 1 to `most`. Returns 1 if the key is absent, and
/// `None` after reporting a mistake. `what` describes the number in messages.
fn at_most(
    field: &Field<Integer>,
    most: u32,
    what: &str,
    report: &mut Report<'_>,
) -> Option<NonZeroU32> {
    let given: &Spanned<Integer> = match field {
        Field::Absent => return Some(NonZeroU32::MIN),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let number = u32::try_from(given.value.0).ok().filter(|number| *number <= most);
    let number = number.and_then(NonZeroU32::new);
    if number.is_none() {
        let message = format_args!("{what} {}", given.value.0);
        report.error(given.at, message, format_args!("expected 1 to {most}"));
    }
    number
}
