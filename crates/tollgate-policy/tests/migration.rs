//! Two stores at once: what they mean, and what is wrong with them.

use tollgate_policy::{OnMove, SideSettings, StoreSettings, explain, parse};

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
    assert_eq!((rollout.percent, rollout.on_move), (10, OnMove::Carry));
    assert!(matches!(rollout.from, SideSettings::Memcached(_)));
    assert!(matches!(rollout.to, SideSettings::Redis(_)));
    let afresh = store.replace("10%,", "100%, on_move: start_afresh,");
    let StoreSettings::Rollout(rollout) = settings(&afresh) else { panic!("no rollout") };
    assert_eq!((rollout.percent, rollout.on_move), (100, OnMove::StartAfresh));
}

#[test]
fn a_shadow_compares_everybody_unless_it_says_otherwise() {
    let store = format!("{{ shadow: {{ store: {{ memory: {{}} }}, compared_with: {REDIS} }} }}");
    let StoreSettings::Shadow(shadow) = settings(&store) else { panic!("no shadow") };
    assert_eq!(shadow.percent, 100);
    assert!(matches!(shadow.store, SideSettings::Memory(_)));
    assert!(matches!(shadow.compared_with, SideSettings::Redis(_)));
}

#[test]
fn both_are_said_in_words() {
    let store = format!("{{ rollout: {{ percent: 10%, from: {MEMCACHED}, to: {REDIS} }} }}");
    let loaded = parse("shop.yaml", &format!("{POLICY}store: {store}")).unwrap();
    let said = explain(&loaded).to_string();
    for line in ["10% of clients by `to`; who moves takes along", "1 server (cache)", "1 shard (a)"]
    {
        assert!(said.contains(line), "{line:?} is not in {said}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_what_is_right() {
    let rollout = |rest: &str| format!("{{ rollout: {{ {rest} }} }}");
    for (store, said) in [
        (rollout(&format!("from: {MEMCACHED}, to: {REDIS}")), "percent"),
        (rollout(&format!("percent: 10, from: {MEMCACHED}, to: {REDIS}")), "10%"),
        (rollout(&format!("percent: 101%, from: {MEMCACHED}, to: {REDIS}")), "from 0% to 100%"),
        (
            rollout(&format!("percent: 1%, from: {REDIS}, to: {REDIS}")),
            "both stores are the same servers",
        ),
        (
            rollout(&format!("percent: 1%, from: {{}}, to: {REDIS}")),
            "expected `memory`, `redis` or `memcached`",
        ),
        (
            rollout(&format!("percent: 1%, from: {{ rollout: {{}} }}, to: {REDIS}")),
            "unknown key \"rollout\"",
        ),
        (rollout(&format!("percent: 1%, on_move: cary, from: {MEMCACHED}, to: {REDIS}")), "carry"),
        (
            format!("{{ memory: {{}}, shadow: {{ store: {MEMCACHED}, compared_with: {REDIS} }} }}"),
            "this one is in two",
        ),
    ] {
        let mistake = mistake(&store);
        assert!(mistake.contains(said), "{store}: {mistake}");
        assert!(mistake.contains("shop.yaml:6:"), "{mistake}");
    }
}
