//! Policies for the servers that a test starts.

use tollgate::HashKey;
use tollgate_backend::{Backend, Refunds};
use tollgate_policy::{LoadedPolicy, StoreSettings, parse};

use crate::kit::Server;

/// A deadline that is longer than any decision takes on a busy machine.
pub(crate) const PATIENT: &str = "deadline: 10s";

/// Returns a policy with a limit per token and a limit per address. `store` is the value of
/// `store.redis`.
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

/// Returns the same policy as [`loaded`], in which the pair `subject` selects the shard. The
/// suite's subjects differ in this pair, so the charges of one call are on several shards.
pub(crate) fn routed_by_subject(store: &str) -> LoadedPolicy {
    let mut loaded = loaded(store);
    if let StoreSettings::Redis(redis) = &mut loaded.settings.store {
        redis.route_by = Some("subject".into());
    }
    loaded
}

/// Returns the settings of shards with one primary each.
pub(crate) fn shards(primaries: &[&Server]) -> String {
    let shard = |(number, server): (usize, &&Server)| {
        format!("s{number}: {{ primary: \"{}\" }}", server.url())
    };
    let shards: Vec<_> = primaries.iter().enumerate().map(shard).collect();
    format!("shards: {{ {} }}", shards.join(", "))
}

/// Opens the store of `loaded` with the key that all of these tests use.
pub(crate) fn open(loaded: &LoadedPolicy) -> Backend {
    Backend::open(&loaded.settings, key(), &loaded.policy, Refunds::ByResponses).unwrap()
}

pub(crate) fn key() -> HashKey {
    HashKey::from_secret(b"the same on every node")
}
