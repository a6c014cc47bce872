//! The policy of all scenarios.

use std::sync::OnceLock;
use std::time::Duration;

use tollgate_policy::{LoadedPolicy, parse};

use super::error::ChaosError;

/// The hourly quota of each client, in units. The window is longer than any run. If a client was
/// admitted above the quota, the store had therefore lost units or nodes had decided without the
/// store.
pub(crate) const HOUR_QUOTA: u64 = 20;
/// The quota of each client per second, in units. The windows of this limit are so short that some
/// windows end and begin during a fault.
pub(crate) const SECOND_QUOTA: u64 = 5;
/// The name of the hourly limit.
pub(crate) const HOUR: &str = "hour";
/// The name of the limit per second.
pub(crate) const SECOND: &str = "second";
/// The number of nodes of a scenario, which share the limits.
pub(crate) const NODES: usize = 2;
/// The deadline of a decision: the default of policies.
pub(crate) const DEADLINE: Duration = Duration::from_millis(15);
/// A long deadline, which no decision misses only because the machine is busy.
pub(crate) const LONG_DEADLINE: Duration = Duration::from_secs(5);

/// The header with the client's name.
pub(crate) const CLIENT_HEADER: &str = "x-client";

/// Returns the policy with `store` as the value of `store:`.
pub(crate) fn policy(store: &str) -> Result<LoadedPolicy, ChaosError> {
    parse("chaos.yaml", &text(store)).map_err(ChaosError::Policy)
}

/// Returns the text of the policy file with `store` as the value of `store:`.
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

/// The value of `scripting` in the policies of this process. The cell is empty if the policies use
/// the default.
static SCRIPTING: OnceLock<&str> = OnceLock::new();

/// Makes all policies of this process use the tables of the server module.
pub(crate) fn use_tables() {
    let _ = SCRIPTING.set("tables");
}

/// Returns the value of `scripting` in all policies.
pub(crate) fn scripting() -> &'static str {
    SCRIPTING.get().copied().unwrap_or("auto")
}

/// Returns the value of `store:` for a store with `shards`, which all nodes share.
pub(crate) fn redis(shards: &[String], deadline: Duration) -> String {
    let shard = |(number, words): (usize, &String)| format!("s{number}: {words}");
    let shards: Vec<_> = shards.iter().enumerate().map(shard).collect();
    let (shards, deadline, scripting) = (shards.join(", "), deadline.as_millis(), scripting());
    // Without a deny cache, every request reaches the store.
    format!(
        "{{ redis: {{ shards: {{ {shards} }}, nodes: {NODES}, deadline: {deadline}ms, \
         deny_cache: false, scripting: {scripting} }} }}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_one() {
        let store = redis(&["{ primary: \"redis://127.0.0.1:1\" }".into()], DEADLINE);
        let loaded = policy(&store).unwrap();
        // The nodes need no `secret`, because all nodes are in one process, which creates one key
        // for them.
        let [warning] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
        assert!(warning.to_string().contains("without a `secret`"), "{warning}");
        let names: Vec<_> =
            loaded.policy.limits().iter().map(|limit| limit.limit.name().to_owned()).collect();
        assert_eq!(names, [HOUR, SECOND]);
    }
}
