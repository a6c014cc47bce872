//! Tests of the choice among overrides, of their effects, and of their encoding.

use proptest::prelude::*;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{Algorithm, KeyedHash, Value};

use super::*;
use crate::HashKey;
use std::sync::Arc;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const LATER: Timestamp = Timestamp::from_millis(1_700_000_060_000);

fn key() -> HashKey {
    HashKey::from_secret(b"a test's key")
}

fn limit(name: &str) -> Arc<Limit> {
    let window = FixedWindow::new(10, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    Arc::new(Limit::new(name, Algorithm::FixedWindow(window)).unwrap())
}

fn subject(pairs: &[(&str, &str)]) -> Subject {
    let pairs = pairs.iter().map(|(name, value)| (*name, Value::Clear(value.as_bytes())));
    Subject::new(pairs, &key())
}

fn about(limit: Option<&str>, target: OverrideTarget, quota: u64) -> Override {
    let target = OverrideScope { limit: limit.map(Into::into), target };
    let effect = Effect::Quota { quota, burst: None };
    Override { target, effect, expires_at: LATER, reason: "a test".into() }
}

fn of_subject(pairs: &[(&str, &str)]) -> OverrideTarget {
    OverrideTarget::subject(&subject(pairs).veiled(&key()))
}

fn of_network(network: &str) -> OverrideTarget {
    OverrideTarget::Network {
        dimension: "address".into(),
        network: Network::parse(network).unwrap(),
    }
}

fn in_force(overrides: &[Override]) -> Arc<Overrides> {
    let table = overrides.iter().fold(OverrideTable::default(), |table, one| {
        table.changed(&OverrideChange::Set(one.clone()), NOW).unwrap()
    });
    let held = Arc::<Overrides>::default();
    held.set(Arc::new(table));
    held
}

/// Returns the quota that is in force for `subject`.
fn quota(held: &Overrides, name: &str, subject: &Subject, now: Timestamp) -> u64 {
    match held.resolve(&limit(name), subject, &key(), now).map(|(ruled, _)| ruled) {
        None => 10,
        Some(ResolvedOverride::Limit(limit)) => limit.capacity(),
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn the_nearest_word_counts() {
    let address = |text| OverrideTarget::Value(subject(&[("address", text)]).veiled(&key()));
    let held = in_force(&[
        about(Some("core"), of_network("192.0.2.0/24"), 24),
        about(None, of_network("192.0.0.0/16"), 16),
        about(None, address("192.0.2.7"), 7),
        about(None, of_subject(&[("address", "192.0.2.8")]), 8),
        about(Some("core"), of_subject(&[("address", "192.0.2.8")]), 88),
        about(None, of_network("2001:db8::/32"), 32),
    ]);
    let rows = [
        ("core", "192.0.2.1", 24),
        ("search", "192.0.2.1", 16),
        ("core", "192.0.2.7", 7),
        ("core", "192.0.2.8", 88),
        ("search", "192.0.2.8", 8),
        ("core", "192.1.2.8", 10),
        ("core", "2001:db8:1::/64", 32),
        ("core", "2001:db9:1::/64", 10),
        ("core", "no address", 10),
    ];
    for (name, address, expected) in rows {
        let subject = subject(&[("address", address)]);
        assert_eq!(quota(&held, name, &subject, NOW), expected, "{name} {address}");
        assert_eq!(quota(&held, name, &subject, LATER), 10);
    }
}

#[test]
fn what_is_said_of_everybody_is_the_last_word() {
    let ann = subject(&[("user", "ann")]);
    let held = in_force(&[
        about(None, OverrideTarget::AllSubjects, 1),
        about(Some("core"), OverrideTarget::AllSubjects, 2),
        about(None, of_subject(&[("user", "ann")]), 3),
    ]);
    for (name, user, expected) in [("core", "ann", 3), ("core", "bob", 2), ("search", "bob", 1)] {
        assert_eq!(quota(&held, name, &subject(&[("user", user)]), NOW), expected, "{name} {user}");
    }
    let switch = held.switch_of(&limit("core"), NOW).unwrap();
    assert_eq!(switch.effect, Effect::Quota { quota: 2, burst: None });
    assert!(held.switch_of(&limit("core"), LATER).is_none());
    assert_eq!(quota(&held, "core", &ann, LATER), 10);
}

#[test]
fn nodes_of_older_versions_read_what_they_can_understand() {
    let form = |one: Override| in_force(&[one]).table().to_bytes()[0];
    let target = || of_subject(&[("user", "42")]);
    assert_eq!(form(about(None, target(), 1)), 1);
    assert_eq!(form(about(None, OverrideTarget::AllSubjects, 1)), 2);
    assert_eq!(form(Override { effect: Effect::Counted, ..about(None, target(), 1) }), 2);
    assert_eq!(form(switch(OverrideTarget::Rule("search".into()), Effect::Counted)), 3);
    assert_eq!(form(switch(OverrideTarget::Shedding(SheddingTarget::All), Effect::Unlimited)), 3);
}

fn switch(target: OverrideTarget, effect: Effect) -> Override {
    Override { effect, ..about(None, target, 1) }
}

#[test]
fn shedding_is_as_calm_as_its_own_switch_and_that_of_all_say() {
    use tollgate_core::policy::shedding::ShedMode;
    let of = |target, effect| switch(OverrideTarget::Shedding(target), effect);
    let held = in_force(&[of(SheddingTarget::Fleet, Effect::Counted)]);
    assert_eq!(held.shed_mode(SheddingTarget::Fleet, NOW), ShedMode::Shadow);
    assert_eq!(held.shed_mode(SheddingTarget::Worker, NOW), ShedMode::Enforce);
    assert_eq!(held.shed_mode(SheddingTarget::Fleet, LATER), ShedMode::Enforce);
    let held = in_force(&[
        of(SheddingTarget::Fleet, Effect::Counted),
        of(SheddingTarget::All, Effect::Unlimited),
    ]);
    assert_eq!(held.shed_mode(SheddingTarget::Fleet, NOW), ShedMode::Off);
    assert_eq!(held.shed_mode(SheddingTarget::Worker, NOW), ShedMode::Off);
    // The override of load shedding does not change any limit.
    assert_eq!(quota(&held, "core", &subject(&[("user", "ann")]), NOW), 10);
}

#[test]
fn a_subject_is_found_by_its_hashes_in_any_order_and_by_all_of_it() {
    let held = in_force(&[about(None, of_subject(&[("user", "42"), ("route", "/a")]), 5)]);
    let hashed = |name, value: &str| (name, Value::Hashed(key().hash(value.as_bytes())));
    for pairs in [
        [hashed("user", "42"), hashed("route", "/a")],
        [hashed("route", "/a"), ("user", Value::Secret(b"42"))],
    ] {
        assert_eq!(quota(&held, "core", &Subject::new(pairs, &key()), NOW), 5);
    }
    for pairs in [&[("user", "42")][..], &[("user", "42"), ("route", "/b")]] {
        assert_eq!(quota(&held, "core", &subject(pairs), NOW), 10);
    }
}

#[test]
fn a_target_has_one_override_and_what_is_over_leaves_with_the_next_change() {
    let target = || of_subject(&[("user", "42")]);
    let first = about(None, target(), 1);
    let table = OverrideTable::default().changed(&OverrideChange::Set(first.clone()), NOW).unwrap();
    let second = Override { expires_at: LATER.after(Millis::new(1)), ..about(None, target(), 2) };
    let table = table.changed(&OverrideChange::Set(second.clone()), NOW).unwrap();
    assert_eq!((table.version().changes, table.overrides().len()), (2, 1));
    assert_eq!(table.get(&first.target, NOW).map(|one| &**one), Some(&second));
    assert_eq!(table.expires_at(), second.expires_at);
    let other = about(None, of_subject(&[("user", "43")]), 3);
    let late = second.expires_at;
    assert_eq!(
        table.changed(&OverrideChange::Remove(first.target.clone()), late),
        Err(OverrideStoreError::Missing)
    );
    let long = Override { expires_at: late.after(Millis::new(1)), ..other };
    let table = table.changed(&OverrideChange::Set(long.clone()), late).unwrap();
    assert_eq!(table.overrides().len(), 1);
    let table = table.changed(&OverrideChange::Remove(long.target), late).unwrap();
    assert!(table.overrides().is_empty());
}

#[test]
fn there_are_so_many_and_no_more() {
    let one =
        |number: usize| Arc::new(about(None, of_subject(&[("user", &number.to_string())]), 1));
    let all = (0..MAX_OVERRIDES).map(one).collect();
    let table = OverrideTable::new(TableVersion::default(), all).unwrap();
    let again = about(None, of_subject(&[("user", "7")]), 2);
    assert!(table.changed(&OverrideChange::Set(again), NOW).is_ok());
    let more = about(None, of_subject(&[("user", "more")]), 2);
    assert_eq!(table.changed(&OverrideChange::Set(more), NOW), Err(OverrideStoreError::Full));
    assert_eq!(OverrideTable::from_bytes(&table.to_bytes()), Ok(table));
}

#[test]
fn a_quota_that_a_limit_cannot_count_leaves_the_limit_as_it_is() {
    let held = in_force(&[about(None, of_subject(&[("user", "42")]), u64::MAX)]);
    assert_eq!(quota(&held, "core", &subject(&[("user", "42")]), NOW), 10);
}

fn any_override() -> impl Strategy<Value = Override> {
    let text = || "[a-z#{}\u{e9}]{1,9}";
    let target = prop_oneof![
        (text(), text()).prop_map(|(name, value)| of_subject(&[(&name, &value)])),
        (text(), text()).prop_map(|(name, value)| {
            OverrideTarget::Value(subject(&[(&name, &value)]).veiled(&key()))
        }),
        (0_u8..=24).prop_map(|bits| of_network(&format!("{}/{bits}", mask(bits)))),
        Just(OverrideTarget::AllSubjects),
        text().prop_map(|name| OverrideTarget::Rule(name.into())),
        proptest::sample::select(&SheddingTarget::VARIANTS[..]).prop_map(OverrideTarget::Shedding),
    ];
    let effect = prop_oneof![
        (1_u64.., proptest::option::of(1_u64..))
            .prop_map(|(quota, burst)| Effect::Quota { quota, burst }),
        Just(Effect::Unlimited),
        Just(Effect::Blocked),
        Just(Effect::Counted),
    ];
    (proptest::option::of("[a-z]{1,5}"), target, effect, any::<u64>(), ".{0,9}").prop_map(
        |(limit, target, effect, expires_at, reason)| Override {
            target: OverrideScope { limit: limit.map(Into::into), target },
            effect,
            expires_at: Timestamp::from_millis(expires_at),
            reason: reason.into(),
        },
    )
}

/// Returns an address whose first `bits` bits are set.
fn mask(bits: u8) -> std::net::Ipv4Addr {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0).into()
}

proptest! {
    #[test]
    fn a_table_is_read_as_it_was_written(
        overrides in proptest::collection::vec(any_override(), 0..5),
        changes: u64,
        drawn: u64,
    ) {
        let overrides = overrides.into_iter().map(Arc::new).collect();
        let table = OverrideTable::new(TableVersion { changes, drawn }, overrides).unwrap();
        let bytes = table.to_bytes();
        prop_assert_eq!(OverrideTable::from_bytes(&bytes), Ok(table));
        // If the bytes of a table are cut at any index, they decode to another table or to an
        // error, without a panic.
        for end in 0..bytes.len() {
            let _ = OverrideTable::from_bytes(&bytes[..end]);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = OverrideTable::from_bytes(&bytes);
        let _ = OverrideTable::from_bytes(&[&[1][..], &bytes].concat());
    }
}
