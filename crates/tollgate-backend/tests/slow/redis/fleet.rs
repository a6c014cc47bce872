//! Policies over servers of a test's own.

use tollgate::HashKey;
use tollgate_backend::{Backend, Refunds};
use tollgate_policy::{LoadedPolicy, StoreSettings, parse};

use crate::kit::Server;

/// Longer than any decision takes on a busy machine.
pub(crate) const PATIENT: &str = "deadline: 10s";

/// Limits per token and per address, under `store`, which is what follows `store.redis`.
pub(crate) fn loaded(store: &str) -> LoadedPolicy {
    let text = format!(
        "subjects: {{ token: {{ header: authorization }}, address: {{ client_address: {{}} }} }}\n\
         limits:\n\
         \x20 core:    {{ quota: 10, window: 1h, per: token }}\n\
         \x20 address: {{ quota: 10, window: 1h, per: address }}\n\
         rules: [{{ limits: [core, address] }}]\n\
         store: {{ redis: {{ {store} }} }}\n",
    );
    parse("test.yaml", &text).unwrap()
}

/// The same, where shards are chosen by what the suite's subjects differ in: so the charges of one
/// call live on several.
pub(crate) fn routed_by_subject(store: &str) -> LoadedPolicy {
    let mut loaded = loaded(store);
    if let StoreSettings::Redis(redis) = &mut loaded.settings.store {
        redis.route_by = Some("subject".into());
    }
    loaded
}

/// The words for shards, each a primary alone.
pub(crate) fn shards(primaries: &[&Server]) -> String {
    let shard = |(number, server): (usize, &&Server)| {
        format!("s{number}: {{ primary: \"{}\" }}", server.url())
    };
    let shards: Vec<_> = primaries.iter().enumerate().map(shard).collect();
    format!("shards: {{ {} }}", shards.join(", "))
}

/// The store of `loaded`, under the key of all these tests.
pub(crate) fn open(loaded: &LoadedPolicy) -> Backend {
    Backend::open(&loaded.settings, key(), &loaded.policy, Refunds::ByResponses).unwrap()
}

pub(crate) fn key() -> HashKey {
    HashKey::from_secret(b"the same on every node")
}
