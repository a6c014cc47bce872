//! The settings of rollouts and shadow stores, and mistakes in them.

use tollgate_core::Percent;
use tollgate_policy::{MigrationStoreSettings, OnMove, StoreSettings, explain, parse};

const POLICY: &str = "
secret: { file: /run/key }
subjects: { address: { client_address: {} } }
limits: { core: { quota: 5, window: 1h, per: address } }
rules: [{ limits: core }]
";

const REDIS: &str = "{ redis: { shards: { a: { primary: 'redis://h' } } } }";
const MEMCACHED: &str = "{ memcached: { servers: cache } }";

fn settings(store: &str) -> StoreSettings {
    parse("shop.yaml", &format!("{POLICY}store: {store}")).unwrap().settings.store
}

fn mistake(store: &str) -> String {
    parse("shop.yaml", &format!("{POLICY}store: {store}")).unwrap_err().to_string()
}

#[test]
fn a_rollout_has_two_sides_and_a_percentage() {
    let store = format!("{{ rollout: {{ percent: 10%, from: {MEMCACHED}, to: {REDIS} }} }}");
    let StoreSettings::Rollout(rollout) = settings(&store) else { panic!("no rollout") };
    assert_eq!((rollout.percent, rollout.on_move), (Percent::new(10).unwrap(), OnMove::Transfer));
    assert!(matches!(rollout.from, MigrationStoreSettings::Memcached(_)));
    assert!(matches!(rollout.to, MigrationStoreSettings::Redis(_)));
    let StoreSettings::Rollout(rollout) = settings(&store.replace("10%", "0.1%")) else {
        panic!("no rollout");
    };
    assert_eq!(rollout.percent, Percent::of_ten_thousand(10).unwrap());
    let afresh = store.replace("10%,", "100%, on_move: reset,");
    let StoreSettings::Rollout(rollout) = settings(&afresh) else { panic!("no rollout") };
    assert_eq!((rollout.percent, rollout.on_move), (Percent::ALL, OnMove::Reset));
}

#[test]
fn a_shadow_compares_everybody_unless_it_says_otherwise() {
    let store = format!("{{ shadow: {{ store: {{ memory: {{}} }}, shadow_store: {REDIS} }} }}");
    let StoreSettings::Shadow(shadow) = settings(&store) else { panic!("no shadow") };
    assert_eq!(shadow.percent, Percent::ALL);
    assert!(matches!(shadow.store, MigrationStoreSettings::Memory(_)));
    assert!(matches!(shadow.compared_with, MigrationStoreSettings::Redis(_)));
}

#[test]
fn both_are_explained() {
    let store = format!("{{ rollout: {{ percent: 10%, from: {MEMCACHED}, to: {REDIS} }} }}");
    let loaded = parse("shop.yaml", &format!("{POLICY}store: {store}")).unwrap();
    let explanation = explain(&loaded).to_string();
    for line in [
        "`to` decides for 10% of clients; clients that move keep",
        "1 server (cache)",
        "1 shard (a)",
    ] {
        assert!(explanation.contains(line), "{line:?} is not in {explanation}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_what_is_right() {
    let rollout = |rest: &str| format!("{{ rollout: {{ {rest} }} }}");
    for (store, explanation) in [
        (rollout(&format!("from: {MEMCACHED}, to: {REDIS}")), "percent"),
        (rollout(&format!("percent: 10, from: {MEMCACHED}, to: {REDIS}")), "10%"),
        (rollout(&format!("percent: 101%, from: {MEMCACHED}, to: {REDIS}")), "from 0% to 100%"),
        (
            rollout(&format!("percent: 1%, from: {REDIS}, to: {REDIS}")),
            "both stores use the same servers",
        ),
        (
            rollout(&format!("percent: 1%, from: {{}}, to: {REDIS}")),
            "expected `memory`, `redis` or `memcached`",
        ),
        (
            rollout(&format!("percent: 1%, from: {{ rollout: {{}} }}, to: {REDIS}")),
            "unknown key \"rollout\"",
        ),
        (
            rollout(&format!("percent: 1%, on_move: transfr, from: {MEMCACHED}, to: {REDIS}")),
            "transfer",
        ),
        (
            format!("{{ memory: {{}}, shadow: {{ store: {MEMCACHED}, shadow_store: {REDIS} }} }}"),
            "this one has two",
        ),
    ] {
        let mistake = mistake(&store);
        assert!(mistake.contains(explanation), "{store}: {mistake}");
        assert!(mistake.contains("shop.yaml:6:"), "{mistake}");
    }
}

/// The two stores must not have a server in common, unless they use two of its databases. A subject
/// has the same keys in both stores.
#[test]
fn a_server_in_both_stores_is_a_mistake() {
    let redis =
        |shards: &str, more: &str| format!("{{ redis: {{ shards: {{ {shards} }}{more} }} }}");
    let one = redis("a: { primary: 'redis://h', replicas: 'redis://i:6380' }", "");
    let both = |store: &str| format!("{{ rollout: {{ percent: 1%, from: {one}, to: {store} }} }}");
    let sentinel =
        |name: &str| redis(&format!("a: {{ sentinels: 'redis://s:1', service: {name} }}"), "");
    for same in [
        redis("a: { primary: 'redis://h:6379' }", ", scripting: tables"),
        redis("b: { primary: 'redis://j' }, c: { primary: 'redis://u:p@H/0' }", ""),
        redis("b: { primary: 'redis://j', replicas: 'rediss://i:6380' }", ""),
        redis(
            "b: { primary: 'redis://j' }",
            ", previous: { shards: { c: { primary: 'redis://h' } } }",
        ),
    ] {
        let mistake = mistake(&both(&same));
        assert!(mistake.contains("both stores use the same servers"), "{same}: {mistake}");
        assert!(mistake.contains("another database"), "{mistake}");
    }
    for other in [
        redis("a: { primary: 'redis://h/1' }", ", scripting: tables"),
        redis("a: { primary: 'redis://h:6381' }", ""),
        sentinel("x"),
    ] {
        settings(&both(&other));
    }
    let moves = |to| {
        format!("{{ rollout: {{ percent: 1%, from: {}, to: {} }} }}", sentinel("x"), sentinel(to))
    };
    settings(&moves("y"));
    assert!(mistake(&moves("x")).contains("both stores use the same servers"));
}

#[test]
fn two_sides_that_go_by_different_clocks_are_warned_of_at_the_word() {
    let warnings = |store: &str| -> Vec<String> {
        let loaded = parse("shop.yaml", &format!("{POLICY}store: {store}")).unwrap();
        loaded.warnings.iter().map(ToString::to_string).collect()
    };
    let by_shards = "{ redis: { shards: { a: { primary: 'redis://h' } }, clock: store } }";
    let other = "{ redis: { shards: { b: { primary: 'redis://i' } }, clock: store } }";
    for (store, explanation) in [
        (
            format!("{{ rollout: {{ percent: 1%, from: {MEMCACHED}, to: {by_shards} }} }}"),
            "`to` uses its shards' clock and `from` the nodes' clock",
        ),
        (
            format!("{{ shadow: {{ store: {by_shards}, shadow_store: {{ memory: {{}} }} }} }}"),
            "`store` uses its shards' clock and `shadow_store` the nodes' clock",
        ),
    ] {
        let [warning] = &warnings(&store)[..] else { panic!("{store}") };
        assert!(warning.contains(explanation), "{warning}");
        let column = format!("store: {store}").find("clock: store").unwrap() + "clock: ".len() + 1;
        assert!(warning.contains(&format!("shop.yaml:6:{column}")), "{warning}");
    }
    let alike = format!("{{ rollout: {{ percent: 1%, from: {other}, to: {by_shards} }} }}");
    assert_eq!(warnings(&alike), [""; 0]);
}

#[test]
fn charges_that_span_shards_are_warned_of_in_the_map_that_is_left_and_in_either_store() {
    let policy = "
secret: { file: /run/key }
subjects: { address: { client_address: {} }, token: { header: a } }
limits:
  core: { quota: 5, window: 1h, per: [token, address] }
  near: { quota: 5, window: 1h, per: address }
rules: [{ match: { has: token }, limits: [core, near] }]
";
    let shards = "shards: { a: { primary: 'redis://h' }, b: { primary: 'redis://i' } }";
    let warnings = |store: String| -> Vec<String> {
        let loaded = parse("shop.yaml", &format!("{policy}store: {store}")).unwrap();
        loaded.warnings.iter().map(ToString::to_string).collect()
    };
    let routed = format!("{{ redis: {{ {shards}, route_by: address }} }}");
    assert_eq!(warnings(routed.clone()), [""; 0]);

    let left = format!(
        "{{ redis: {{ {shards}, route_by: address, previous: {{ shards: {{ a: {{}}, b: {{}} }} }} }} }}"
    );
    let [unrouted, spanning] = &warnings(left)[..] else { panic!("two warnings") };
    assert!(
        unrouted.contains("may span shards of `previous`: until all subjects have moved,"),
        "{unrouted}"
    );
    assert!(spanning.contains("`previous` has no `route_by`"), "{spanning}");

    let side = format!("{{ redis: {{ {shards} }} }}");
    let rollout = format!("{{ rollout: {{ percent: 1%, from: {MEMCACHED}, to: {side} }} }}");
    let [spanning] = &warnings(rollout)[..] else { panic!("one warning") };
    assert!(spanning.contains("may span shards: if so, a refusal"), "{spanning}");
    assert!(spanning.contains("shop.yaml:7:"), "{spanning}");
}
