//! Many concurrent callers.

use std::collections::BTreeSet;

use super::*;

/// The quota. Half of the 200 callers are admitted.
const QUOTA: u64 = 100;

in_every_way! {
    parallel_callers_of_one_key_are_admitted_up_to_the_quota
}

async fn parallel_callers_of_one_key_are_admitted_up_to_the_quota(way: Way) {
    let site = Site::start(way, QUOTA).await;
    let mut callers = JoinSet::new();
    for _ in 0..2 * QUOTA {
        let client = Arc::clone(&site.client);
        callers.spawn(async move { client.take(0, 1).await });
    }
    let results = callers.join_all().await;
    assert_eq!(counts(&results), once(1..=QUOTA), "each count is told to one caller");
    let resets: BTreeSet<_> =
        results.iter().map(|results| results.as_ref().unwrap().full_reset_at.as_millis()).collect();
    assert_eq!(resets, BTreeSet::from([NOW.as_millis() + 3_600_000]), "a window has one reset");
    site.client.assert_sound();
    site.server.assert_every_key_ends().await;
}
