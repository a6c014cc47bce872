//! The clock that decisions use.

use tollgate_redis::DecisionClock;

use super::*;
use crate::shard::site::patient;

#[tokio::test]
async fn the_clock_of_the_shard_decides_where_it_is_asked_to() {
    let server = Server::start().await;
    let settings = patient(server.url().parse().unwrap());
    let keys = tollgate_redis::Keys::new(tollgate_conformance::PlainHash);
    let store = tollgate_redis::RedisShard::open(&settings, keys, Way::Function.choice());
    store.ready(PATIENCE).await.unwrap();
    let client = Client::on(store.with_clock(DecisionClock::Shard), 100);
    let reading = client.take(0, 1).await.unwrap();
    let mut connection = server.connect().await;
    let (secs, _): (u64, u64) = redis::cmd("TIME").query_async(&mut connection).await.unwrap();
    // The call's time and the shard's time are years apart, so a tolerance of an hour distinguishes
    // the two times.
    let resets = reading.full_reset_at.as_secs_ceil();
    assert!((secs..=secs + 3_601).contains(&resets), "{resets} is not within an hour of {secs}");
    let offset = client.store.clock_offset(NOW).unwrap();
    let years = i64::try_from(secs * 1_000 - NOW.as_millis()).unwrap();
    assert!((offset.millis - years).abs() < 60_000, "{offset:?} is not about {years}");
}
