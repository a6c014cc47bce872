//! Settings of a policy file that cannot change while the process runs.

use tollgate_policy::{
    MigrationStoreSettings, RedisSettings, RolloutSettings, ServeSettings, Settings,
    ShadowSettings, StoreSettings,
};

use super::ListenerState;

/// Returns the keys of settings that differ between `old` and `new` and need a restart.
pub(super) fn changed(old: &Settings, new: &Settings, listeners: ListenerState) -> Vec<String> {
    let mut keys = Vec::new();
    if old.key != new.key {
        keys.push("secret".to_owned());
    }
    let revealed = revealed(old, new);
    if old.store != new.store && !is_turned(&old.store, &new.store) {
        let store = store(&old.store, &new.store);
        // A difference in any other key of the store is reported as `store`.
        let is_named = !store.is_empty() || !revealed.is_empty();
        keys.extend(if is_named { store } else { vec!["store".to_owned()] });
    }
    keys.extend(revealed);
    if old.traces != new.traces {
        keys.push("traces".to_owned());
    }
    keys.extend(serve(&old.serve, &new.serve, listeners));
    keys
}

fn store(old: &StoreSettings, new: &StoreSettings) -> Vec<String> {
    match (old, new) {
        (StoreSettings::Memory(_), StoreSettings::Memory(_)) => vec!["store.memory".to_owned()],
        (StoreSettings::Redis(old), StoreSettings::Redis(new)) => redis("store", old, new),
        (StoreSettings::Rollout(old), StoreSettings::Rollout(new)) => {
            let mut keys = side("store.rollout.from", &old.from, &new.from);
            keys.extend(side("store.rollout.to", &old.to, &new.to));
            keys.extend((old.on_move != new.on_move).then(|| "store.rollout.on_move".to_owned()));
            keys
        }
        (StoreSettings::Shadow(old), StoreSettings::Shadow(new)) => {
            let mut keys = side("store.shadow.store", &old.store, &new.store);
            let (old, new) = (&old.compared_with, &new.compared_with);
            keys.extend(side("store.shadow.shadow_store", old, new));
            keys
        }
        _ => Vec::new(),
    }
}

fn side(at: &str, old: &MigrationStoreSettings, new: &MigrationStoreSettings) -> Vec<String> {
    match (old, new) {
        _ if old == new => Vec::new(),
        (MigrationStoreSettings::Redis(old), MigrationStoreSettings::Redis(new)) => {
            redis(at, old, new)
        }
        _ => vec![at.to_owned()],
    }
}

/// Returns whether `old` and `new` differ only in settings that can change while the process runs.
fn is_turned(old: &StoreSettings, new: &StoreSettings) -> bool {
    match (old, new) {
        (StoreSettings::Rollout(old), StoreSettings::Rollout(new)) => {
            RolloutSettings { percent: new.percent, ..(**old).clone() } == **new
        }
        (StoreSettings::Shadow(old), StoreSettings::Shadow(new)) => {
            ShadowSettings { percent: new.percent, ..(**old).clone() } == **new
        }
        _ => false,
    }
}

/// Returns the keys of the settings that differ between `old` and `new`, which are settings of the
/// Redis store under the key `at` of the policy file.
fn redis(at: &str, old: &RedisSettings, new: &RedisSettings) -> Vec<String> {
    let keys = [
        ("shards", old.shards != new.shards),
        ("previous", old.previous != new.previous),
        ("route_by", old.route_by != new.route_by),
        ("deadline", old.deadline != new.deadline),
        ("nodes", old.nodes != new.nodes),
        ("clock", old.clock != new.clock),
        ("reads", old.reads != new.reads),
        ("deny_cache", old.remember_refusals != new.remember_refusals),
        ("scripting", old.step != new.step),
        ("user", old.user != new.user),
        ("password", old.password != new.password),
        ("tls", old.tls != new.tls),
        ("sentinel", old.sentinel != new.sentinel),
    ];
    let changed = keys.into_iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(key, _)| format!("{at}.redis.{key}")).collect()
}

/// Returns the limits with a changed `reveal` setting. This setting determines the names of
/// counters, and whether administrators can see the subjects.
fn revealed(old: &Settings, new: &Settings) -> Vec<String> {
    let (was, will_be) = (old.revealed.iter(), new.revealed.iter());
    let revealed = was.filter(|limit| !new.revealed.contains(limit));
    let revealed = revealed.chain(will_be.filter(|limit| !old.revealed.contains(limit)));
    revealed.map(|limit| format!("limits.{limit}.reveal")).collect()
}

fn serve(old: &ServeSettings, new: &ServeSettings, listeners: ListenerState) -> Vec<String> {
    let decisions = [
        ("http", old.http != new.http),
        ("grpc", old.grpc != new.grpc),
        ("resp", old.resp != new.resp),
    ];
    let administration =
        [("admin", old.admin != new.admin), ("dashboard", old.dashboard != new.dashboard)];
    let open = match listeners {
        ListenerState::Open => [&decisions[..], &administration].concat(),
        ListenerState::Administration => administration.to_vec(),
        ListenerState::Ignored => Vec::new(),
    };
    let changed = open.into_iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(key, _)| format!("serve.{key}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "
limits: { all: { quota: 1, window: 1h } }
rules: [ { limits: all } ]
";

    fn between(old: &str, new: &str, listeners: ListenerState) -> Vec<String> {
        let settings = |rest: &str| {
            let text = format!("{POLICY}{rest}");
            tollgate_policy::parse("test.yaml", &text).unwrap().settings
        };
        changed(&settings(old), &settings(new), listeners)
    }

    #[test]
    fn a_percentage_is_turned_while_the_process_runs() {
        let rollout = |percent: &str, rest: &str, to: &str| {
            format!(
                "secret: {{ env: A }}\nstore: {{ rollout: {{ percent: {percent}, {rest} \
                 from: {{ memory: {{}} }}, to: {{ memcached: {{ servers: {to} }} }} }} }}"
            )
        };
        let old = rollout("0%", "", "a");
        for (new, keys) in [
            (rollout("30%", "", "a"), &[][..]),
            (rollout("30%", "on_move: reset,", "a"), &["store.rollout.on_move"]),
            (rollout("0%", "", "b"), &["store.rollout.to"]),
        ] {
            assert_eq!(between(&old, &new, ListenerState::Open), keys, "{new}");
        }
    }

    #[test]
    fn each_key_is_named_and_no_other() {
        let redis = |rest: &str| {
            format!(
                "secret: {{ env: A }}\nstore: {{ redis: {{ shards: {{ s: {{ primary: \"redis://a:1\" }} }} {rest} }} }}"
            )
        };
        let plain = redis("");
        for (old, new, keys) in [
            ("", "", &[][..]),
            ("", "store: { memory: { max_entries: 5 } }", &["store.memory"]),
            (
                &plain,
                &redis(", deadline: 20ms, nodes: 3"),
                &["store.redis.deadline", "store.redis.nodes"],
            ),
            (&plain, &plain.replace("a:1", "a:2"), &["store.redis.shards"]),
            (&plain, &plain.replace("env: A", "env: B"), &["secret"]),
            (&plain, "secret: { env: A }", &["store"]),
            ("", "traces: { endpoint: \"http://127.0.0.1:4318\" }", &["traces"]),
            ("", "serve: { http: { listen: \"127.0.0.1:1\" } }", &["serve.http"]),
        ] {
            assert_eq!(between(old, new, ListenerState::Open), keys, "{old} {new}");
        }
        let http = "serve: { http: { listen: \"127.0.0.1:1\" } }";
        let admin = "serve: { admin: { listen: \"127.0.0.1:1\", tokens: { env: T } }, dashboard: { hosts: [a] } }";
        let ours = ["serve.admin", "serve.dashboard"];
        for (address, open, administration) in
            [(http, &["serve.http"][..], &[][..]), (admin, &ours, &ours)]
        {
            assert_eq!(between("", address, ListenerState::Open), open);
            assert_eq!(between("", address, ListenerState::Administration), administration);
            assert_eq!(between("", address, ListenerState::Ignored), [""; 0]);
        }
    }
}
