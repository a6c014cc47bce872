//! Candidates, and limits that are enforced for a percentage of subjects. The percentage selects
//! the same subjects on every node. Candidates have counters of their own.

use proptest::prelude::*;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{Algorithm, KeyedHash, Limit, Millis, OnChange, Percent, Subject, Value};

use crate::laws::changes::any_algorithm;
use crate::laws::world::config;

/// A hash for tests, which spreads evenly enough. It has no secret key.
struct Spread(u64);

impl KeyedHash for Spread {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        let mix = |hash: u128, byte: &u8| {
            let hash =
                (hash ^ u128::from(*byte)).wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
            hash ^ hash >> 67
        };
        bytes.iter().fold(u128::from(self.0) + 1, mix).to_be_bytes()
    }
}

fn subject(user: u32) -> Subject {
    Subject::new([("user", Value::Clear(&user.to_be_bytes()))], &Spread(0))
}

fn limit(name: &str) -> Limit {
    let window = FixedWindow::new(5, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
}

fn percent(hundredths: u8) -> Percent {
    Percent::new(hundredths).unwrap()
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn a_larger_share_only_adds_subjects(
        user: u32, key: u64, share in 0..=100_u8, more in 0..=100_u8,
    ) {
        let (less, more) = (share.min(more), share.max(more));
        let enforces = |name: &str, share| {
            limit(name).with_enforced(percent(share)).enforces(&subject(user), &Spread(key))
        };
        prop_assert!(!enforces("core", less) || enforces("core", more));
        prop_assert_eq!(enforces("core", share), enforces("points", share), "it is the subject's");
        prop_assert!(enforces("core", 100) && !enforces("core", 0));
    }

    #[test]
    fn a_candidate_shares_counters_with_nobody(
        live in any_algorithm(), one in any_algorithm(), other in any_algorithm(),
    ) {
        for on_change in [OnChange::Keep, OnChange::Restart] {
            let live = Limit::new("core", live).unwrap().with_on_change(on_change);
            let candidate = |algorithm| {
                let tried = live.clone().with_candidate(algorithm);
                tried.candidate().unwrap().state_digest()
            };
            prop_assert_ne!(candidate(one), live.state_digest());
            prop_assert_eq!(candidate(one) == candidate(other), one == other);
            // A limit that adopts the definition of the candidate does not use the candidate's
            // counters.
            let adopted = Limit::new("core", one).unwrap().with_on_change(on_change);
            prop_assert_ne!(candidate(one), adopted.state_digest());
        }
    }
}

#[test]
fn a_share_is_about_as_large_as_it_says() {
    for share in [1, 10, 50] {
        let limit = limit("core").with_enforced(percent(share));
        let enforced = (0..10_000).filter(|user| limit.enforces(&subject(*user), &Spread(7)));
        let (enforced, expected) = (enforced.count(), usize::from(share) * 100);
        assert!(enforced.abs_diff(expected) < 200, "{enforced} of {expected}");
    }
}

#[test]
fn of_an_overridden_limit_nothing_is_tried() {
    let tried = limit("core").with_enforced(Percent::NONE);
    let tried = tried.with_candidate(*limit("core").with_quota(3, None).unwrap().algorithm());
    let overridden = tried.with_quota(9, None).unwrap();
    assert_eq!((overridden.candidate(), overridden.enforced()), (None, Percent::ALL));
    assert_eq!(overridden.state_digest(), tried.state_digest());
    let candidate = tried.candidate().unwrap();
    assert_eq!((candidate.candidate(), candidate.enforced()), (None, Percent::ALL));
}
