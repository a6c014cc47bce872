//! Inputs that memcached interprets in an unexpected way. A long expiry is read as a date, and a
//! long key is rejected.

use std::time::Instant;

use crate::kit::{PATIENCE, Server, subject, take, window};
use tollgate_conformance::{Figure, PlainHash, assert_held};
use tollgate_core::{
    Charge, ChargeId, Cost, Deduplication, Limit, Millis, Operation, Reading, Timestamp,
};
use tollgate_memcached::{Keys, Layout, Memcached, MemcachedError, ServerSettings};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);
/// The length of a day in seconds.
const DAY: u64 = 86_400;

/// memcached reads an expiry of more than 30 days as a date. The date for an expiry of 31 days is
/// long past, so an item with such an expiry would disappear at once.
#[tokio::test]
async fn windows_of_more_than_thirty_days_are_kept_to_their_end() {
    let server = Server::start();
    let store = server.store().await;
    until_it_told_its_time(&server, &store).await;
    let stored = server.execute(&format!("ms trap 1 T{}\r\n1", 31 * DAY));
    let is_sprung = stored == ["HD"] && server.execute("mg trap v") == ["EN"];
    let (mut anew, mut early) = (0, 0);
    for days in [29, 30, 31, 365] {
        let limit = window(&format!("of-{days}"), 10, Millis::from_secs(days * DAY));
        let started = Instant::now();
        for used in 1..=3 {
            anew += u64::from(charge(&store, &limit, "a").await.unwrap().used != used);
        }
        let left = seconds_left(&server, &limit) + started.elapsed().as_secs();
        early += u64::from(left < days * DAY);
    }
    assert_held(&[
        Figure::fault_seen("items that 31 days ended at once", is_sprung.into()),
        Figure::at_most("charges that did not find their window", anew, 0),
        Figure::at_most("items that end before their window", early, 0),
    ]);
}

/// The limits reveal their subjects. The names of their items have each length around the longest
/// key that memcached accepts.
#[tokio::test]
async fn names_of_every_length_are_counted_apart() {
    let server = Server::start();
    let refused = server.execute(&format!("mg {} v", "n".repeat(251)));
    let is_refused = refused[0].starts_with("CLIENT_ERROR");
    let limit = window("shown", 10, Millis::from_secs(3_600));
    let (mut errors, mut mixed, mut kept) = (0, 0, 0);
    for layout in [Layout::Cell, Layout::Pairs] {
        let settings = ServerSettings { layout, ..server.settings() };
        let keys = Keys::new(PlainHash).with_revealed("shown");
        let store = Memcached::open(&settings, keys).with_deadline(PATIENCE);
        store.ready(PATIENCE).await.unwrap();
        for length in (150..=260).chain([10_000]) {
            // Both layouts use the same key, so the layout is part of the subject's name.
            let name = format!("{layout:?}{}", "n".repeat(length));
            for last in ["a", "\n", "b"] {
                let name = format!("{name}{last}");
                let Ok(charged) = charge(&store, &limit, &name).await else {
                    errors += 1;
                    continue;
                };
                mixed += u64::from(charged.used != 1);
                let refunded = give_back(&store, &limit, &name, &charged).await;
                kept += u64::from(refunded.is_err() || refunded.unwrap().used != 0);
            }
        }
    }
    assert_held(&[
        Figure::fault_seen("names of 251 bytes that memcached refused", is_refused.into()),
        Figure::at_most("charges without an answer", errors, 0),
        Figure::at_most("subjects that counted with others", mixed, 0),
        Figure::at_most("refunds that gave nothing back", kept, 0),
    ]);
}

async fn charge(store: &Memcached, limit: &Limit, name: &str) -> Result<Reading, MemcachedError> {
    let subject = subject(name);
    Ok(store.apply_within(NOW, &[take(limit, &subject)], PATIENCE).await?[0])
}

/// Refunds the charge with the reading `charged`, by a refund that is safe to repeat. The record of
/// such a refund has the longest name of all items.
async fn give_back(
    store: &Memcached,
    limit: &Limit,
    name: &str,
    charged: &Reading,
) -> Result<Reading, MemcachedError> {
    let (position, id) = (charged.position, ChargeId(1));
    let operation =
        Operation::Refund { cost: Cost::ONE, position, id, deduplication: Deduplication::ById };
    let charge = Charge { limit, subject: &subject(name), operation };
    Ok(store.apply_within(NOW, &[charge], PATIENCE).await?[0])
}

/// Charges until the store knows the server's clock, which is necessary for absolute expiries.
async fn until_it_told_its_time(server: &Server, store: &Memcached) {
    let limit = window("asked", 1_000_000, Millis::from_secs(40 * DAY));
    let started = Instant::now();
    charge(store, &limit, "a").await.unwrap();
    while seconds_left(server, &limit) < 31 * DAY {
        assert!(started.elapsed() < PATIENCE, "its time is not known");
        charge(store, &limit, "a").await.unwrap();
    }
}

/// Returns the number of seconds until memcached drops the item of `limit`.
fn seconds_left(server: &Server, limit: &Limit) -> u64 {
    let name = Keys::new(PlainHash).name(limit, &subject("a"));
    let reply = server.execute(&format!("mg {} t", std::str::from_utf8(&name).unwrap()));
    reply[0].strip_prefix("HD t").and_then(|left| left.parse().ok()).unwrap_or(0)
}
