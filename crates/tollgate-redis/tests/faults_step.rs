//! The store on a shard: exact under many callers, and honest under faults.

mod kit;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kit::Server;
use tokio::task::JoinSet;
use tollgate_conformance::{PlainHash, check};
use tollgate_core::algo::FixedWindow;
use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::reading::Fit;
use tollgate_core::{
    Algorithm, Ask, Charge, ChargeId, Cost, Limit, Millis, Reading, Subject, Timestamp,
};
use tollgate_redis::{
    Choice, Credentials, DecidingClock, Endpoint, Gate, Keys, LaneError, LinkLimits, RedisShard,
    Secret, SecretSource, ShardSettings,
};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The deadline of calls that a server is expected to leave unanswered.
const SHORT: Duration = Duration::from_millis(15);
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const QUOTA: u64 = 100;

async fn shard_of(server: &Server) -> RedisShard {
    shard_at(server.url().parse().unwrap()).await
}

async fn shard_at(endpoint: Endpoint) -> RedisShard {
    let mut settings = ShardSettings::new(endpoint);
    settings.link = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        seek: PATIENCE,
        ..LinkLimits::default()
    };
    let store = RedisShard::open(&settings, Keys::new(PlainHash), Choice::Best);
    store.ready(PATIENCE).await.unwrap();
    store.with_deadline(PATIENCE)
}

struct Client {
    store: RedisShard,
    limit: Limit,
    subject: Subject,
}

impl Client {
    fn new(store: RedisShard) -> Self {
        let window = FixedWindow::new(QUOTA, Millis::new(3_600_000), Anchor::FirstRequest);
        let limit = Limit::new("core", Algorithm::FixedWindow(window.unwrap())).unwrap();
        Self { store, limit, subject: Subject::default() }
    }

    async fn take(&self, units: u64, within: Duration) -> Result<Reading, LaneError> {
        let ask = Ask::Take { cost: Cost::new(units).unwrap(), id: ChargeId(1) };
        let charge = Charge { limit: &self.limit, subject: &self.subject, ask };
        Ok(self.store.apply_within(NOW, &[charge], within).await?[0])
    }

    fn gate(&self) -> Gate {
        self.store.status()[0].gate
    }
}

#[tokio::test]
async fn the_suite_passes_over_a_lane() {
    let server = Server::start().await;
    check(&shard_of(&server).await, "lane").await;
}

#[tokio::test]
async fn the_shipped_user_is_enough_for_a_lane() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/redis-acl.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find(|line| line.starts_with("user ")).unwrap();
    let server = Server::start().await;
    let words: Vec<_> = ["SETUSER"].into_iter().chain(line.split(' ').skip(1)).collect();
    let mut admin = server.connect().await;
    redis::cmd("ACL").arg(&words).exec_async(&mut admin).await.unwrap();
    let endpoint: Endpoint = server.url().parse().unwrap();
    let store = shard_at(endpoint.with_credentials(Credentials {
        user: Some("tollgate".into()),
        password: Some(SecretSource::Given(Secret::new("password"))),
    }))
    .await;
    check(&store, "user").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_callers_of_one_key_are_admitted_up_to_the_quota() {
    let server = Server::start().await;
    let client = Arc::new(Client::new(shard_of(&server).await));
    let mut callers = JoinSet::new();
    for _ in 0..2 * QUOTA {
        let client = Arc::clone(&client);
        callers.spawn(async move { client.take(1, PATIENCE).await.unwrap() });
    }
    let mut used = BTreeSet::new();
    let mut resets = BTreeSet::new();
    let mut refused = 0;
    while let Some(reading) = callers.join_next().await {
        let reading = reading.unwrap();
        resets.insert(reading.whole_at);
        if reading.fit == Fit::Now {
            assert!(used.insert(reading.used), "two were told the count {}", reading.used);
        } else {
            refused += 1;
        }
    }
    assert_eq!(used, (1..=QUOTA).collect());
    assert_eq!((refused, resets.len()), (QUOTA, 1));
}

#[tokio::test]
async fn a_server_that_thaws_charges_nothing_that_was_given_up() {
    let server = Server::start().await;
    let client = Client::new(shard_of(&server).await);
    assert_eq!(client.take(1, PATIENCE).await.unwrap().used, 1);
    server.freeze();
    while client.gate() != Gate::Open {
        assert!(client.take(1, SHORT).await.is_err());
    }
    assert_eq!(client.take(1, SHORT).await, Err(LaneError::Unavailable));
    server.thaw();
    client.store.ready(PATIENCE).await.unwrap();
    assert_eq!(client.take(1, PATIENCE).await.unwrap().used, 2);
}

#[tokio::test]
async fn a_server_that_forgets_the_step_is_given_it_again() {
    let server = Server::start().await;
    let client = Client::new(shard_of(&server).await);
    let mut connection = server.connect().await;
    for count in 1..=50 {
        let forget = if count % 2 == 0 { "FUNCTION" } else { "SCRIPT" };
        redis::cmd(forget).arg("FLUSH").exec_async(&mut connection).await.unwrap();
        assert_eq!(client.take(1, PATIENCE).await.unwrap().used, count);
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let mut server = Server::start().await;
    let client = Client::new(shard_of(&server).await);
    assert_eq!(client.take(3, PATIENCE).await.unwrap().used, 3);
    server.kill();
    while client.gate() != Gate::Open {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(client.take(1, PATIENCE).await, Err(LaneError::Unavailable));
    server.start_again(&[]);
    client.store.ready(PATIENCE).await.unwrap();
    // It kept nothing, and says so: the count begins anew.
    assert_eq!(client.take(1, PATIENCE).await.unwrap().used, 1);
}

#[tokio::test]
async fn the_clock_of_the_shard_decides_where_it_is_asked_to() {
    let server = Server::start().await;
    let client = Client::new(shard_of(&server).await.with_clock(DecidingClock::Shard));
    let reading = client.take(1, PATIENCE).await.unwrap();
    let mut connection = server.connect().await;
    let (secs, _): (u64, u64) = redis::cmd("TIME").query_async(&mut connection).await.unwrap();
    // Years lie between the call's time and the shard's: an hour tells them apart.
    let resets = reading.whole_at.as_secs_ceil();
    assert!((secs..=secs + 3_601).contains(&resets), "{resets} is not within an hour of {secs}");
    let offset = client.store.clock_offset(NOW).unwrap();
    let years = i64::try_from(secs * 1_000 - NOW.as_millis()).unwrap();
    assert!((offset.millis - years).abs() < 60_000, "{offset:?} is not about {years}");
}
