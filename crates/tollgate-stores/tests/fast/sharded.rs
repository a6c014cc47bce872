//! The assignment of subjects to shards, and the number of subjects that a new shard map moves.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tollgate::model::{Subject, Value};
use tollgate_stores::sharded::{MAX_WEIGHT, Routing, ShardsError};
use tollgate_stores::{Shard, Sharded};

use crate::setup::{key, user};

fn shards(weights: &[u32]) -> Vec<Shard<()>> {
    let shard = |(number, weight): (usize, &u32)| Shard {
        name: format!("shard-{number}").into(),
        weight: *weight,
        store: (),
    };
    weights.iter().enumerate().map(shard).collect()
}

fn sharded(shards: Vec<Shard<()>>) -> Sharded<()> {
    Sharded::new(key(), shards).unwrap()
}

/// Returns whether `hits` of `draws` are within five standard deviations of the expected number,
/// for a probability of `part` in `whole`.
fn is_fair(hits: u64, draws: u64, (part, whole): (u64, u64)) -> bool {
    let off = i128::from(hits * whole) - i128::from(draws * part);
    off * off <= 25 * i128::from(draws) * i128::from(part) * i128::from(whole - part)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_shard_that_is_added_takes_its_share_and_nothing_else_moves(
        weights in prop::collection::vec(1..=8_u32, 2..8),
        first in 0..1_000_000_u64,
    ) {
        const SUBJECTS: u64 = 6_000;
        let after = sharded(shards(&weights));
        let added = after.shards().last().unwrap().name.clone();
        let before = sharded(shards(&weights[..weights.len() - 1]));
        let mut moved = 0;
        for number in first..first + SUBJECTS {
            let subject = user(number);
            let (old, new) = (before.shard_for(&subject), after.shard_for(&subject));
            if old.name != new.name {
                prop_assert_eq!(&new.name, &added);
                moved += 1;
            }
        }
        let share = after.fair_share(&added).unwrap();
        prop_assert!(is_fair(moved, SUBJECTS, share), "{moved} of {SUBJECTS}, fair: {share:?}");
    }
}

#[test]
fn every_shard_holds_what_its_weight_says() {
    const SUBJECTS: u64 = 100_000;
    for weights in [&[1, 1, 1, 1, 1][..], &[1, 2, 3, 4], &[MAX_WEIGHT, 1], &[100, 150, 250]] {
        let sharded = sharded(shards(weights));
        let mut subjects_of = BTreeMap::<_, u64>::new();
        for number in 0..SUBJECTS {
            let home = sharded.shard_for(&user(number));
            *subjects_of.entry(&home.name).or_default() += 1;
        }
        for shard in sharded.shards() {
            let held = subjects_of.get(&shard.name).copied().unwrap_or_default();
            let share = sharded.fair_share(&shard.name).unwrap();
            assert!(is_fair(held, SUBJECTS, share), "{weights:?}: {held}, fair: {share:?}");
        }
    }
}

#[test]
fn homes_are_the_same_in_every_release() {
    let sharded = sharded(shards(&[1, 1, 2]));
    let partitions: String = (0..24)
        .map(|number| sharded.shard_for(&user(number)).name.chars().last().unwrap())
        .collect();
    // A different order would mean that an upgrade moves subjects between existing shards.
    assert_eq!(partitions, "220121202120122222220222");
}

#[test]
fn another_key_spreads_otherwise() {
    let one = sharded(shards(&[1, 1]));
    let other = Sharded::new(tollgate::HashKey::from_secret(b"other"), shards(&[1, 1])).unwrap();
    let moved = (0..1_000).filter(|number| {
        one.shard_for(&user(*number)).name != other.shard_for(&user(*number)).name
    });
    assert!(is_fair(moved.count() as u64, 1_000, (1, 2)));
}

#[test]
fn limits_of_one_subject_are_together() {
    let weights = [1; 7];
    let (first, whole) =
        (sharded(shards(&weights)), sharded(shards(&weights)).with_routing(Routing::Subject));
    let by_token = sharded(shards(&weights)).with_routing(Routing::Dimension("token".into()));
    let mut spread = 0;
    for number in 0..200 {
        let token = number.to_string();
        let token = ("token", Value::Secret(token.as_bytes()));
        let subject =
            |pairs: &[(&'static str, Value<'_>)]| Subject::new(pairs.iter().copied(), &key());
        let by_token_only = subject(&[token]);
        let per_route = subject(&[token, ("route", Value::Clear(b"/search"))]);
        let turned = subject(&[("route", Value::Clear(b"/search")), token]);
        assert_eq!(first.shard_for(&by_token_only).name, first.shard_for(&per_route).name);
        assert_eq!(by_token.shard_for(&by_token_only).name, by_token.shard_for(&turned).name);
        let without = subject(&[("route", Value::Clear(token.0.as_bytes()))]);
        assert_eq!(by_token.shard_for(&without).name, first.shard_for(&without).name);
        spread +=
            usize::from(whole.shard_for(&by_token_only).name != whole.shard_for(&per_route).name);
    }
    assert!(spread > 100, "{spread}");
    let empty = Subject::default();
    assert_eq!(first.shard_for(&empty).name, by_token.shard_for(&empty).name);
}

#[test]
fn shards_that_cannot_be_a_fleet_are_refused() {
    let refused = |shards: Vec<Shard<()>>| Sharded::new(key(), shards).unwrap_err();
    assert_eq!(refused(Vec::new()), ShardsError::Count);
    assert_eq!(refused(shards(&vec![1; 1_025])), ShardsError::Count);
    let heavy = ShardsError::Weight { shard: "shard-1".into(), given: MAX_WEIGHT + 1 };
    assert_eq!(refused(shards(&[1, MAX_WEIGHT + 1])), heavy);
    assert_eq!(refused(shards(&[0])), ShardsError::Weight { shard: "shard-0".into(), given: 0 });
    let mut twins = shards(&[1, 1]);
    twins[1].name = "shard-0".into();
    let error = refused(twins);
    assert_eq!(error, ShardsError::Name("shard-0".into()));
    assert!(error.to_string().contains("\"shard-0\""));
}
