//! The settings of memcached stores, and mistakes in them.

use std::time::Duration;

use tollgate_policy::{MemcachedLayout, MemcachedSettings, StoreSettings, explain, parse};

const POLICY: &str = "
secret: { file: /run/key }
subjects: { address: { client_address: {} } }
limits: { core: { quota: 5, window: 1h, per: address, reveal: true } }
rules: [{ limits: core }]
";

fn settings(store: &str) -> MemcachedSettings {
    let loaded = parse("shop.yaml", &format!("{POLICY}store: {store}")).unwrap();
    match loaded.settings.store {
        StoreSettings::Memcached(settings) => *settings,
        other => panic!("{other:?}"),
    }
}

fn mistake(store: &str) -> String {
    parse("shop.yaml", &format!("{POLICY}store: {store}")).unwrap_err().to_string()
}

#[test]
fn one_server_is_enough() {
    let settings = settings("{ memcached: { servers: 'cache:11211' } }");
    assert_eq!(settings.servers, ["cache:11211".into()]);
    assert_eq!(settings.layout, MemcachedLayout::Cell);
    assert_eq!((settings.nodes.get(), settings.deadline), (1, Duration::from_millis(15)));
    assert_eq!(settings.revealed, ["core".into()]);
}

#[test]
fn a_fleet_is_explained() {
    let store = "{ memcached: { servers: [a, b], layout: pairs, nodes: 3, deadline: 30ms } }";
    let loaded = parse("shop.yaml", &format!("{POLICY}store: {store}")).unwrap();
    let explanation = explain(&loaded).to_string();
    for line in [
        "memcached  2 servers (a, b)",
        "layout     fixed windows as a count and a reset time",
        "within 30ms",
        "admits 1/3 of each limit",
        "subjects of core are readable in item names",
    ] {
        assert!(explanation.contains(line), "{line:?} is not in {explanation}");
    }
}

#[test]
fn what_is_wrong_is_said_with_what_is_right() {
    for (store, explanation) in [
        ("{ memcached: {} }", "servers"),
        ("{ memcached: { servers: [] } }", "expected 1 to 1024"),
        ("{ memcached: { servers: [a, a] } }", "duplicate server \"a\""),
        ("{ memcached: { servers: a, layout: pair } }", "pairs"),
        ("{ memcached: { servers: a, deadline: 11s } }", "expected 1ms to 10s"),
        ("{ memcached: { servers: a, nodes: 0 } }", "the number of nodes is 0"),
        ("{ memory: {}, memcached: { servers: a } }", "this one has two"),
        ("{}", "expected `memory`, `redis`, `memcached`, `rollout` or `shadow`"),
    ] {
        let mistake = mistake(store);
        assert!(mistake.contains(explanation), "{store}: {mistake}");
    }
}

/// The nodes' estimates of the server's clock would differ by more than `skew_max`, and nodes would
/// discard each other's state.
#[test]
fn a_skew_max_that_memcached_cannot_measure_is_refused() {
    let memcached = "{ memcached: { servers: a } }";
    let memory = "{ memory: {} }";
    let rollout =
        "{ rollout: { percent: 0%, from: { memcached: { servers: a } }, to: { memory: {} } } }";
    let result = |skew_max: &str, store: &str| {
        let text = format!(
            "secret: {{ file: /run/key }}\n\
             limits:\n  core: {{ quota: 5, window: 1h, skew_max: {skew_max} }}\n\
             rules: [{{ limits: core }}]\n\
             store: {store}\n"
        );
        parse("shop.yaml", &text).map(drop).map_err(|mistakes| mistakes.to_string())
    };
    for (skew_max, store) in [("500ms", memcached), ("2249ms", memcached), ("2s", rollout)] {
        let mistake = result(skew_max, store).unwrap_err();
        assert!(mistake.contains("shop.yaml:3:43"), "{mistake}");
        assert!(mistake.contains("at least 2250ms"), "{mistake}");
    }
    for (skew_max, store) in [("2250ms", memcached), ("5s", memcached), ("500ms", memory)] {
        assert_eq!(result(skew_max, store), Ok(()), "{skew_max} {store}");
    }
}

/// With `layout: pairs`, reservations are reported with their position, because two plain numbers
/// cannot store them. Limits that are stored as one item can have reservations.
#[test]
fn reservations_that_pairs_cannot_hold_are_warned_of() {
    let warnings = |layout: &str, algorithm: &str| {
        let text = format!(
            "secret: {{ file: /run/key }}\n\
             subjects: {{ address: {{ client_address: {{}} }} }}\n\
             limits: {{ core: {{ quota: 5, window: 1h, per: address, algorithm: {algorithm}, reservation: {{ max_duration: 1m }} }} }}\n\
             rules: [{{ name: tokens, limits: {{ core: {{ from_header: x-cost }} }} }}]\n\
             store: {{ memcached: {{ servers: a, layout: {layout} }} }}\n"
        );
        let warnings = parse("shop.yaml", &text).unwrap().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let reply = warnings("pairs", "fixed_window");
    let [hold, rule] = &reply[..] else { panic!("{reply:?}") };
    assert!(rule.contains("shop.yaml:4:") && rule.contains("\"tokens\""), "{rule}");
    assert!(rule.contains("layout: cell"), "{rule}");
    assert!(hold.contains("shop.yaml:3:") && hold.contains("cannot store"), "{hold}");
    assert_eq!(warnings("cell", "fixed_window"), [""; 0]);
    assert_eq!(warnings("pairs", "sliding_window"), [""; 0]);
}
