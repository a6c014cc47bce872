//! The policy that all scenarios are under, made in memory.

use std::time::Duration;

use tollgate_policy::{LoadedPolicy, parse};

use super::error::ChaosError;

/// The units of a client in an hour: no run outlasts the window, so what is admitted beyond them
/// was admitted twice.
pub(crate) const HOUR_QUOTA: u64 = 20;
/// The units of a client in a second: windows that end and begin while faults happen.
pub(crate) const SECOND_QUOTA: u64 = 5;
/// The name of the limit of an hour.
pub(crate) const HOUR: &str = "hour";
/// The name of the limit of a second.
pub(crate) const SECOND: &str = "second";
/// The nodes that share the limits.
pub(crate) const NODES: usize = 2;
/// A decision's deadline, as policies have it that do not name one.
pub(crate) const DEADLINE: Duration = Duration::from_millis(15);
/// A deadline that a busy machine does not miss by itself.
pub(crate) const PATIENT: Duration = Duration::from_secs(5);

/// The header that names the client.
pub(crate) const CLIENT_HEADER: &str = "x-client";

/// The policy over `store`, which is what follows `store:`.
pub(crate) fn policy(store: &str) -> Result<LoadedPolicy, ChaosError> {
    parse("chaos.yaml", &text(store)).map_err(ChaosError::Policy)
}

/// The policy file over `store`.
pub(crate) fn text(store: &str) -> String {
    format!(
        "subjects: {{ client: {{ header: {CLIENT_HEADER} }} }}\n\
         limits:\n\
         \x20 {HOUR}:   {{ quota: {HOUR_QUOTA}, window: 1h, per: client }}\n\
         \x20 {SECOND}: {{ quota: {SECOND_QUOTA}, window: 1s, per: client }}\n\
         rules:\n\
         \x20 - {{ match: {{ path: /{HOUR}, has: client }}, limits: {HOUR} }}\n\
         \x20 - {{ match: {{ path: /{SECOND}, has: client }}, limits: {SECOND} }}\n\
         store: {store}\n",
    )
}

/// The words of a store in these shards, shared by all nodes.
pub(crate) fn redis(shards: &[String], deadline: Duration) -> String {
    let shard = |(number, words): (usize, &String)| format!("s{number}: {words}");
    let shards: Vec<_> = shards.iter().enumerate().map(shard).collect();
    let (shards, deadline) = (shards.join(", "), deadline.as_millis());
    // Every refusal is asked for, so that the store is asked all the time.
    format!(
        "{{ redis: {{ shards: {{ {shards} }}, nodes: {NODES}, deadline: {deadline}ms, \
         deny_cache: false }} }}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_one() {
        let store = redis(&["{ primary: \"redis://127.0.0.1:1\" }".into()], DEADLINE);
        let loaded = policy(&store).unwrap();
        // All nodes are in one process, which makes the key.
        let [warning] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
        assert!(warning.to_string().contains("without a `secret`"), "{warning}");
        let names: Vec<_> =
            loaded.policy.limits().iter().map(|limit| limit.limit.name().to_owned()).collect();
        assert_eq!(names, [HOUR, SECOND]);
    }
}
